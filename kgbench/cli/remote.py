"""``--server``: the option of ``kgbench run``, and what it excludes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgbench.core.errors import UsageError
from kgbench.core.kinds import PolicyMode

if TYPE_CHECKING:
    from kgbench.evaluation.request import RunRequest
    from kgbench.service.remote import RemoteSession

server_option = click.option(
    "--server",
    default="",
    metavar="URL",
    help="Judge on a service that kgbench serve runs elsewhere; KGBENCH_TOKEN holds the token "
    "(docs/service.md). With --resume, give it again.",
)


def check_server(server: str, request: RunRequest, trace: Path | None) -> None:
    """Raises UsageError for what a service decides by itself, before anything is written."""
    from kgbench.models.adapted import adapter_names

    if not server:
        return
    given: dict[str, Any] = {
        "--suite": request.suite,
        "--problem-dir": request.problem_dirs,
        "--device": request.device != "auto",
        "--deadline": request.deadlines,
        "--require-sandbox": request.require_sandbox,
        "--policy": request.policy != PolicyMode.STRICT,
        "--trace": trace,
        "--model baseline": request.model == "baseline",
        f"--model {request.model}": request.model.partition(":")[0] in adapter_names(),
    }
    refused = [name for name, value in given.items() if value]
    if refused:
        words = f"--server: the service has its own settings for this; leave {' and '.join(refused)} out"
        raise UsageError("KGB732", words)


def remote_session(server: str, run_id: str) -> RemoteSession:
    """A session on the service. Raises UsageError, TokenRefused, MachineError."""
    from kgbench.service.client import Client
    from kgbench.service.remote import RemoteSession

    return RemoteSession(Client(server), run_id)
