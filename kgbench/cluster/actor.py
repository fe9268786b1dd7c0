"""What runs on a node of a Ray cluster: an actor that holds a session on one device.

What it answers is plain data of kgbench. An error of kgbench travels as ``Refusal``, since Ray makes classes of its own
of exceptions.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import queue
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kgbench.core import user_modules
from kgbench.core.errors import KgbenchError
from kgbench.core.paths import PACKAGE, hidden_dirs
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.session import Session, Settings

RAY_FOLDER: Final = Path("/tmp/ray")
"""Default folder of Ray's sockets and logs; no candidate may reach it."""


@dataclass(frozen=True)
class Hello:
    """Facts about a node, before anything was started on it."""

    kgbench: str
    code: str
    """SHA-256 over the package's modules, since a checkout has the version of its last release."""
    host: str
    lacks: tuple[str, ...]
    """Folders of the user's problems that are not there."""


@dataclass(frozen=True)
class Opened:
    facts: dict[str, Any]
    """The session's."""
    jobs: int
    """Candidates at once."""


@dataclass(frozen=True)
class Judged:
    result: Result
    timed_s: float
    """Seconds of timing in this session so far."""


@dataclass(frozen=True)
class Refusal:
    """An error of kgbench on the node."""

    words: str
    """The error's text, which begins with its number."""


class DeviceActor:
    """Made by Ray. ``judge`` may be called from several threads at once, the others once."""

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._session: Session | None = None
        self._logs = tempfile.TemporaryDirectory(prefix="kgbench-logs-")
        """Folder for the output of its processes, whose end errors quote."""

    def hello(self, folders: Sequence[str]) -> Hello:
        """``folders``: of the user's own problems."""
        lacks = tuple(folder for folder in folders if not Path(folder).is_dir())
        return Hello(version(), code_sha256(), platform.node(), lacks)

    def open(self, settings: Settings, folders: Sequence[str]) -> Opened | Refusal:
        """Take the device, for which it may have to wait long, and start the session."""
        user_modules.offer(folders)
        logs = Path(self._logs.name)
        hidden = {*hidden_dirs(*folders), *(folder for folder in (*settings.hidden, RAY_FOLDER) if folder.exists())}
        try:
            session = Session(replace(settings, hidden=tuple(sorted(hidden)), say=self._said.put, log_dir=logs))
            session.__enter__()
        except KgbenchError as error:
            return Refusal(error.printed)
        self._session = session
        return Opened(dict(session.facts), session.jobs)

    def said(self) -> list[str]:
        """What the session has to say to its user since the last time."""
        words = []
        with contextlib.suppress(queue.Empty):
            while True:
                words.append(self._said.get_nowait())
        return words

    def judge(self, job: Job) -> Judged | Refusal:
        assert self._session is not None  # open() came before
        try:
            return Judged(self._session.evaluate(job), self._session.timed_s)
        except KgbenchError as error:
            return Refusal(error.printed)

    def close(self) -> None:
        """Ends everything that was started here."""
        if self._session is not None:
            self._session.close()
        self._logs.cleanup()


def version() -> str:
    """kgbench's version. The package's top module is not imported for it."""
    return str(sys.modules["kgbench"].__version__)


@functools.cache
def code_sha256() -> str:
    """SHA-256 over the modules of the kgbench that this process imports, the first twelve digits."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
