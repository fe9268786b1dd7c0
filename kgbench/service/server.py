"""A server from its start to its end: socket, database, judging, uvicorn."""

from __future__ import annotations

import contextlib
import functools
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn

from kgbench.core.errors import MachineError, UsageError, to_stderr
from kgbench.core.interruption import ended_by_signals
from kgbench.service.app import make_app
from kgbench.service.changes import Changes
from kgbench.service.connection import connection_class
from kgbench.service.database import Database, serving
from kgbench.service.judging import Judging, OpenBackend
from kgbench.service.metrics import Metrics
from kgbench.service.problems import Problems
from kgbench.service.queue import Queue
from kgbench.service.runs import Runs
from kgbench.service.settings import MOST_CONNECTIONS, Listening
from kgbench.service.state import Service
from kgbench.service.tokens import Tokens

_END_S: Final = 5
"""Seconds that answers under way have when the server ends."""


@dataclass(frozen=True)
class Shows:
    """Problems and runs that a server shows."""

    problems: Problems
    runs: Path | None = None
    """Folder of stored runs; None shows none."""
    keep_days: float = 90.0
    """Days for which verdicts are kept."""


def serve(
    listening: Listening,
    folder: Path,
    open_backend: OpenBackend,
    shows: Shows,
    say: Callable[[str], None] = to_stderr,
) -> None:
    """Answers until SIGINT or SIGTERM. Raises UsageError where it cannot begin, and what ended judging."""
    database = Database(folder)
    with contextlib.closing(database), serving(folder):
        tokens = Tokens(database)
        if not listening.is_loopback and not tokens.any_good():
            words = (
                f"{listening.host} is reached from elsewhere, and the service has no token yet: "
                f"`kgbench token new NAME --data {folder}` makes one; 127.0.0.1 needs none"
            )
            raise UsageError("KGB702", words)
        queue = Queue(database)
        queue.forget(shows.keep_days)
        again = queue.recover()
        changes = Changes()
        problems = shows.problems
        judging = Judging(queue, problems, changes, open_backend)
        metrics = Metrics(queue, judging)
        judging.on_verdict = metrics.waited.observe
        service = Service(queue, tokens, problems, changes, judging, Runs(shows.runs, problems), metrics)
        with _bound(listening) as bound, ended_by_signals():
            waiting = queue.counts()["queued"]
            say(f"{_address(listening, bound)} answers; {waiting} submissions wait, {again} of them started before")
            _run(service, listening, bound)
        if judging.error is not None:
            raise judging.error


def _run(service: Service, listening: Listening, bound: socket.socket) -> None:
    files: dict[str, Any] = {}
    if listening.tls_certificate is not None:
        files = {"ssl_certfile": listening.tls_certificate, "ssl_keyfile": listening.tls_key}
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(service, listening),
            http=connection_class(listening.headers_s),
            ws="none",
            lifespan="on",
            # No name and no path of a request gets onto the terminal.
            access_log=False,
            log_level="error",
            server_header=False,
            date_header=True,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=_END_S,
            **files,
        )
    )
    service.judging.on_failure = functools.partial(setattr, server, "should_exit", True)
    # Streams end before uvicorn waits for its answers.
    shutdown = server.shutdown

    async def end(sockets: list[socket.socket] | None = None) -> None:
        service.changes.close()
        await shutdown(sockets)

    server.shutdown = end  # type: ignore[method-assign]
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[bound])
    if not server.started and service.judging.error is None:
        raise MachineError(
            "KGB703", f"{listening.host}:{listening.port}: the server did not start; see what it printed"
        )


def _bound(listening: Listening) -> socket.socket:
    """A socket that listens. Raises UsageError."""
    try:
        found = socket.getaddrinfo(listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(listening, error) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(1024)
    except OSError as error:
        bound.close()
        raise _cannot_listen(listening, error) from None
    return bound


def _cannot_listen(listening: Listening, error: OSError) -> UsageError:
    words = f"{listening.host}:{listening.port}: cannot listen there: {error}; give another --host or --port"
    return UsageError("KGB703", words)


def _address(listening: Listening, bound: socket.socket) -> str:
    """``http://127.0.0.1:8650``, with the port that was taken."""
    host = f"[{listening.host}]" if ":" in listening.host else listening.host
    scheme = "https" if listening.tls_certificate else "http"
    return f"{scheme}://{host}:{bound.getsockname()[1]}"
