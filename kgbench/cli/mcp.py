"""``kgbench mcp``: tools for agents, over stdio or HTTP."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.cli.options import (
    check_machine,
    deadline_overrides,
    deadlines_on,
    judging_options,
)
from kgbench.core.errors import UsageError

if TYPE_CHECKING:
    from kgbench.mcp.toolbox import Toolbox

EPILOG = """
\b
Examples:
  an agent starts it itself
    claude mcp add kgbench -- kgbench mcp
  on a machine with a GPU, for agents of this machine
    kgbench mcp --http 8765
  for agents of other machines
    export KGBENCH_MCP_TOKEN=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')
    kgbench mcp --http 0.0.0.0:8765

Exit codes: 0 ended, 2 wrong command line, 3 this machine cannot, 130 interrupted.
"""


@click.command(
    epilog=EPILOG, short_help="Tools for agents: read problems, check and time kernels.",
    context_settings={"max_content_width": 110},
)  # fmt: skip
@click.option(
    "--http", "http", metavar="[HOST:]PORT", help="Listen on this address, at /mcp, instead of standard input."
)
@click.option(
    "--idle", "idle_s", type=click.FloatRange(min=0.1), default=600.0, show_default=True, metavar="SECONDS",
    help="Release the GPU after this long without a kernel to judge.",
)  # fmt: skip
@judging_options
def mcp(
    http: str | None,
    idle_s: float,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int | None,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    require_sandbox: str | None,
    policy: str,
) -> None:
    """Serve an agent's tools by the Model Context Protocol: list and read problems, check a kernel, time it, explain a
    failure. Reference, hidden calls and tolerances are never told. docs/agents.md has the line for each agent.
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError("KGB178", "kgbench mcp needs the SDK of MCP: pip install 'kgbench[mcp]'")
    from kgbench.evaluation.evaluator import Evaluator
    from kgbench.mcp.http import TOKEN_VARIABLE, address, checked_token
    from kgbench.mcp.toolbox import Toolbox
    from kgbench.problem.problem_cache import ProblemCache

    place = None if http is None else address(http)
    token = "" if place is None else checked_token(place[0], os.environ.get(TOKEN_VARIABLE, ""))
    overrides = deadline_overrides(deadlines, timeout_s)
    check_machine()

    def opened() -> Evaluator:
        return Evaluator(
            device,
            gpus=gpus or 0,
            jobs=jobs or 0,
            problem_dirs=problem_dirs,
            deadlines=deadlines_on(device, overrides),
            require_sandbox=require_sandbox or "",
            policy=policy,
        )

    toolbox = Toolbox(opened, ProblemCache(problem_dirs), idle_s=idle_s)
    try:
        _serve(toolbox, place, token)
    finally:
        toolbox.close()


def _serve(toolbox: Toolbox, place: tuple[str, int] | None, token: str) -> None:
    """Serve on standard input and output, or at an address, until it is ended."""
    from kgbench.core.interruption import ended_by_signals
    from kgbench.mcp.http import PATH, listening, serve
    from kgbench.mcp.server import server_of

    if place is None:
        with ended_by_signals():
            server_of(toolbox).run("stdio")
        return
    host, port = place
    with listening(host, port) as bound:
        name = f"[{host}]" if ":" in host else host
        where = f"http://{name}:{bound.getsockname()[1]}{PATH}"
        click.echo(f"kgbench: listening on {where}, {'with' if token else 'without'} a token", err=True)
        serve(server_of(toolbox), host, token, bound)
