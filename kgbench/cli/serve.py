"""``kgbench serve``: judges for others over HTTP, until it is ended."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.cli.options import (
    check_machine,
    deadline_overrides,
    deadlines_on,
    judging_options,
)
from kgbench.core import user_modules
from kgbench.core.errors import MachineError, UsageError, to_stderr
from kgbench.core.kinds import PolicyMode
from kgbench.core.paths import hidden_dirs
from kgbench.service.settings import DEFAULT_PORT, MAX_BODY_BYTES, Listening

if TYPE_CHECKING:
    from kgbench.harness.session.session import Settings
    from kgbench.service.server import Shows

NEEDED: Final = ("fastapi", "uvicorn", "prometheus_client")
"""Modules of the extra ``serve``."""
EPILOG: Final = """
\b
Examples:
  for programs on this machine alone; no token is needed
    kgbench serve
  for others: a token each, then listen where they reach it
    kgbench token new alice --rate 60/min
    kgbench serve --host 0.0.0.0 --runs runs --tls-certificate cert.pem --tls-key key.pem
  on the GPUs of a running Ray cluster
    kgbench serve --ray auto
  what they do with it
    export KGBENCH_TOKEN=kgb_...
    kgbench run --server https://judge.example:8650 --model dir:my_kernels
    curl -H "Authorization: Bearer $KGBENCH_TOKEN" https://judge.example:8650/v1/problems
  in a browser: the address, any user name, and the token as the password

Needs pip install 'kgbench[serve]'. Everything about it: docs/service.md. /openapi.json describes every request.

Exit codes: 0 ended by Ctrl-C or SIGTERM, 2 wrong command line, 3 this machine cannot.
"""


@click.command(
    epilog=EPILOG, short_help="Judge kernels for others over HTTP.", context_settings={"max_content_width": 110}
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS",
              help="Where to listen. Other addresses than loopback need a token first: kgbench token new.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True,
              help="0 takes a free one, which is printed.")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=Path("service"), show_default=True,
              metavar="DIR", help="Queue, verdicts and hashes of tokens.")  # fmt: skip
@click.option("--runs", type=click.Path(path_type=Path, file_okay=False, exists=True), metavar="DIR",
              help="Show the runs of this folder, and their leaderboard, to everybody with a token.  "
              "[default: none]")  # fmt: skip
@click.option("--keep-days", type=click.FloatRange(min=0.1), default=90.0, show_default=True, metavar="DAYS",
              help="Verdicts older than this are dropped when the service starts.")  # fmt: skip
@click.option("--max-body", type=click.IntRange(min=1024), default=MAX_BODY_BYTES, show_default=True, metavar="BYTES",
              help="Largest body of a request.")  # fmt: skip
@click.option("--tls-certificate", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="The certificate for HTTPS. Without it, put an HTTPS proxy in front.")  # fmt: skip
@click.option("--tls-key", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE",
              help="The certificate's key.")  # fmt: skip
@click.option("--ray", metavar="auto|HOST:PORT", default="",
              help="Judge on the devices of a running Ray cluster (docs/clusters.md).")  # fmt: skip
@click.option("--timing/--no-timing", default=True, show_default=True, help="Time kernels, or judge correctness only.")
@judging_options
def serve(
    host: str,
    port: int,
    data: Path,
    runs: Path | None,
    keep_days: float,
    max_body: int,
    tls_certificate: Path | None,
    tls_key: Path | None,
    ray: str,
    timing: bool,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int | None,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    require_sandbox: str | None,
    policy: str,
) -> None:
    """Take kernels over HTTP, judge them here, and answer with their verdicts.

    Acknowledged submissions are on disk: a server that was killed continues them when it starts again. A submitter is
    told what a model is told between two rounds, never hidden calls, sizes, tolerances or references.
    """
    check_extra()
    if (tls_certificate is None) != (tls_key is None):
        raise UsageError("KGB101", "--tls-certificate and --tls-key belong together; give both or none")
    overrides = deadline_overrides(deadlines, timeout_s)
    if not ray:
        check_machine()
    from kgbench.harness.session.session import Settings
    from kgbench.service import server
    from kgbench.service.problems import Problems

    user_modules.offer(problem_dirs)
    settings = Settings(
        device=device, gpus=gpus or 0, jobs=jobs or 0, deadlines=deadlines_on(device, overrides),
        hidden=hidden_dirs(data, *problem_dirs, *filter(None, (runs,))), timing=timing,
        require_sandbox=require_sandbox or "", policy=PolicyMode(policy), say=to_stderr,
    )  # fmt: skip
    listening = Listening(host, port, max_body, tls_certificate=tls_certificate, tls_key=tls_key)
    _serve(listening, data, settings, server.Shows(Problems(problem_dirs), runs, keep_days), ray)


def _serve(listening: Listening, data: Path, settings: Settings, shows: Shows, ray: str) -> None:
    from kgbench.cluster.connection import connected
    from kgbench.service import server
    from kgbench.service.backends import local_backend, ray_backend

    if not ray:
        server.serve(listening, data, lambda: local_backend(settings), shows)
        return
    # In this thread, which alone can have its signals back from Ray.
    with connected(ray) as cluster:
        server.serve(listening, data, lambda: ray_backend(settings, cluster, user_modules.folders()), shows)


def check_extra() -> None:
    """Raises MachineError where the extra is not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        words = f"kgbench serve needs {', '.join(missing)}: pip install 'kgbench[serve]'"
        raise MachineError("KGB701", words)
