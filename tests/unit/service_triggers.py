"""What makes each message about a service come up; test_message_triggers.py calls them. No server listens."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kgbench.core.errors import KgbenchError, numbered
from kgbench.service.access import Access
from kgbench.service.changes import MOST_WAITING, Changes
from kgbench.service.client import Client
from kgbench.service.database import Database, serving
from kgbench.service.problems import Problems
from kgbench.service.queue import Queue, Wanted
from kgbench.service.remote import RemoteSession
from kgbench.service.settings import Listening
from kgbench.service.tokens import Caller, Rate, Tokens

WANTED = Wanted("aten/t", "1", "def t(): ...\n", "key")
OPENED: list[Database] = []
"""By the trigger that runs."""
Trigger = Callable[[Path, pytest.MonkeyPatch], object]


def _database(here: Path) -> Database:
    OPENED.append(Database(here))
    return OPENED[-1]


def _needs_extra() -> None:
    for module in ("fastapi", "uvicorn", "prometheus_client"):
        pytest.importorskip(module)


def _no_extra(here: Path, bend: pytest.MonkeyPatch) -> object:
    from kgbench.cli.serve import check_extra

    bend.setattr(importlib.util, "find_spec", lambda name: None)
    return check_extra()


def _serve(here: Path, host: str = "127.0.0.1", port: int = 0) -> object:
    _needs_extra()
    from kgbench.service.server import Shows, serve

    def never() -> Any:
        raise AssertionError("no session is opened")

    return serve(Listening(host, port), here / "service", never, Shows(Problems()))


def _port_is_taken(here: Path, bend: pytest.MonkeyPatch) -> object:
    with socket.create_server(("127.0.0.1", 0)) as other:
        return _serve(here, port=other.getsockname()[1])


def _folder_is_taken(here: Path, bend: pytest.MonkeyPatch) -> object:
    (here / "service").mkdir()
    with serving(here / "service"):
        return _serve(here)


def _above_rate(here: Path, bend: pytest.MonkeyPatch) -> object:
    return Queue(_database(here)).submit(Caller("a", Rate(1, 60)), [WANTED, Wanted("aten/t", "1", "x")])


def _above_queue(here: Path, bend: pytest.MonkeyPatch) -> object:
    return Queue(_database(here)).submit(Caller("a", queue=1), [WANTED, Wanted("aten/t", "1", "x")])


def _too_many_wait(here: Path, bend: pytest.MonkeyPatch) -> object:
    async def listen() -> None:
        changes = Changes()
        with contextlib.ExitStack() as stack:
            for _ in range(MOST_WAITING + 1):
                stack.enter_context(changes.listen("topic", "a"))

    return asyncio.run(listen())


def _same_key(here: Path, bend: pytest.MonkeyPatch) -> object:
    queue = Queue(_database(here))
    queue.submit(Caller("a"), [WANTED])
    return queue.submit(Caller("a"), [Wanted("aten/t", "1", "another", WANTED.key)])


def _body(headers: dict[str, str]) -> object:
    """What the guard says of a request whose connection ends."""
    _needs_extra()
    from kgbench.service.guard import Guard

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    nothing: Any = None
    guard = Guard(nothing, access=nothing, max_body_bytes=10, body_s=1, on_answer=nothing)
    return asyncio.run(guard._body(headers, gone))


def _other_version(here: Path, bend: pytest.MonkeyPatch) -> object:
    _needs_extra()
    from kgbench.service.api import _wanted
    from kgbench.service.models import Submit

    stand_in: Any = SimpleNamespace(problems=Problems())
    return _wanted(stand_in, Submit(problem="aten/t", source="x", problem_sha256="0" * 64))


def _cannot_write(here: Path, bend: pytest.MonkeyPatch) -> object:
    database = _database(here)
    database._connection.execute("PRAGMA query_only = ON")
    return Queue(database).submit(Caller("a"), [WANTED])


def _bug(here: Path, bend: pytest.MonkeyPatch) -> object:
    _needs_extra()
    from kgbench.service.app import make_app

    metrics = SimpleNamespace(answered=None)
    stand_in: Any = SimpleNamespace(tokens=None, metrics=metrics)
    handler: Any = make_app(stand_in, Listening()).exception_handlers[Exception]
    said = json.loads(asyncio.run(handler(None, ValueError("a bug"))).body)["error"]
    raise KgbenchError(said["number"], said["message"])


def _foreign(here: Path, bend: pytest.MonkeyPatch) -> object:
    return Access(Tokens(_database(here)), without_token=True).caller("GET", {"host": "a.example"})


def _cannot_judge(here: Path, bend: pytest.MonkeyPatch) -> object:
    stand_in: Any = SimpleNamespace(url="http://judge", ask=lambda method, path: {"state": "failed"})
    return RemoteSession(stand_in)


TRIGGERS: dict[str, Trigger] = {
    "KGB701": _no_extra,
    "KGB702": lambda here, bend: _serve(here, "0.0.0.0"),
    "KGB703": _port_is_taken,
    "KGB704": _folder_is_taken,
    "KGB705": lambda here, bend: Database(here, make=False),
    "KGB706": lambda here, bend: Tokens(_database(here)).new("a b", Rate(1, 1)),
    "KGB707": lambda here, bend: Rate.read("60 a minute"),
    "KGB710": lambda here, bend: Access(Tokens(_database(here)), without_token=False).caller("GET", {}),
    "KGB711": _above_rate,
    "KGB712": _above_queue,
    "KGB713": _too_many_wait,
    "KGB714": _same_key,
    "KGB715": lambda here, bend: _body({}),
    "KGB716": lambda here, bend: Queue(_database(here)).get("none", "a"),
    "KGB717": _foreign,
    "KGB718": lambda here, bend: _body({"content-length": "11"}),
    "KGB719": _other_version,
    "KGB721": _cannot_write,
    "KGB722": _bug,
    "KGB730": lambda here, bend: Client("ftp://judge"),
    "KGB731": lambda here, bend: Client("http://127.0.0.1:9", "", patience_s=0).ask("GET", "/"),
    "KGB733": _cannot_judge,
}
"""Each ends with an error."""


def said(number: str, here: Path, bend: pytest.MonkeyPatch) -> str:
    """The error's words behind its number."""
    with pytest.raises(KgbenchError) as caught:
        TRIGGERS[number](here, bend)
    while OPENED:
        OPENED.pop().close()
    return numbered(caught.value.number, caught.value.text)
