"""One agent's work on one problem, for the coordinator: starts it, reads its output, ends it, and collects its kernel.

What an agent leaves is hostile: its kernel is read only where it is a regular file of its own folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from kgbench.agents import folder
from kgbench.agents.checks import CheckServer
from kgbench.core.files import remove_tree
from kgbench.core.paths import IMPORT_ROOT
from kgbench.core.types import Result
from kgbench.harness.machine import visible
from kgbench.llm.conversation import MAX_SOURCE_BYTES, Question

OUTPUT_BYTES: Final = 10 << 20
"""Bytes kept from the end of each of an agent's two outputs."""
FLOOD_BYTES: Final = 200 << 20
"""Most bytes of output; an agent that writes more is ended."""
KILL_S: Final = 15.0
"""Seconds in which the launcher must end a process tree."""
Confine = Literal["best", "by landlock", "not"]
_PART: Final = 1 << 16
"""Bytes read from a pipe at once."""
_OURS: Final = ("KGBENCH_",)
"""Prefixes of environment variables that no agent sees."""
_NO_GPU: Final = visible.NONE
"""Variables that hide all GPUs: an agent that tried its kernel on one would disturb timings; ``./check`` runs there."""


class CouldNotStart(Exception):
    """The program was there and could not be started."""


class Closed(Exception):
    """The agent was ended because the run is."""


@dataclass(eq=False)
class Agent:
    """One agent. ``work`` may be called once."""

    argv: Sequence[str]
    question: Question
    words: Callable[[Result, str], str]
    """What ``./check`` prints of a result and the text it is of."""
    command: Sequence[str] = ()
    """Files that the command line names, its program first: they stay visible."""
    confine: Confine = "best"
    """Other values are for tests: what a machine that allows less does, or nothing at all."""
    ended_for: str = field(default="", init=False)
    """Why it was ended before its time; empty when it ended by itself."""
    confined: str = field(default="", init=False)
    not_confined: str = field(default="", init=False)
    exit_code: int | None = field(default=None, init=False)
    seconds: float = field(default=0.0, init=False)
    kernel: str = field(default="", init=False)
    facts: dict[str, Any] = field(default_factory=dict, init=False)
    _error: str = field(default="", init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _outputs: dict[str, _Tail] = field(default_factory=lambda: {"stdout": _Tail(), "stderr": _Tail()}, init=False)

    @property
    def stdout(self) -> str:
        return self._outputs["stdout"].text

    @property
    def stderr(self) -> str:
        return self._outputs["stderr"].text

    def close(self) -> None:
        """End it soon; ``work`` of the other thread raises Closed."""
        self._stop.set()

    def work(self) -> None:
        """Make the folder, run the agent and collect its kernel. Raises CouldNotStart, Closed."""
        base = Path(os.path.realpath(tempfile.mkdtemp(prefix="kgbench-agent-")))
        try:
            for name in ("work", "socket", "spare"):
                (base / name).mkdir(mode=0o700)
            # Later the name may lead elsewhere.
            place = os.open(base / "work", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                folder.fill(base / "work", self.question, base / "socket" / "check")
                self._work(base)
                self.kernel, problem = _kernel_in(place)
            finally:
                os.close(place)
            if problem:
                self.facts["kernel"] = problem
            self._keep()
        finally:
            remove_tree(base)
        if self._stop.is_set():
            raise Closed("the run was ended")
        if self._error:
            raise CouldNotStart(self._error)

    def _work(self, base: Path) -> None:
        begun = time.monotonic()
        server = CheckServer(base / "socket" / "check", self.question, self.words)
        try:
            self._attend(_Launched.start(self._spec(base)), begun + self.question.sampling.timeout_s)
        finally:
            server.close()
            self.seconds = time.monotonic() - begun
            self.facts |= {
                "exit_code": self.exit_code,
                "seconds": round(self.seconds, 3),
                "confined": self.confined,
                "not_confined": self.not_confined,
                **server.facts,
            }
            cut = {name: tail.size for name, tail in self._outputs.items() if tail.size > OUTPUT_BYTES}
            if cut:
                self.facts["output_bytes"] = cut

    def _spec(self, base: Path) -> dict[str, Any]:
        return {
            "base": str(base),
            "work": str(base / "work"),
            "argv": list(self.argv),
            "command": list(self.command),
            "env": environment(os.environ),
            "hidden": [str(path) for path in self.question.hidden],
            "visible": [str(path.expanduser()) for path in self.question.visible],
            "confine": self.confine,
        }

    def _attend(self, launched: _Launched, deadline: float) -> None:
        """Read output until the agent and everything that it started is gone."""
        with launched, selectors.DefaultSelector() as selector:
            for name, fd in launched.outputs.items():
                selector.register(fd, selectors.EVENT_READ, name)
            while selector.get_map():
                self.ended_for = self.ended_for or self._reason_to_end(deadline)
                if self.ended_for:
                    launched.end()
                if launched.is_overdue:
                    break
                for key, _ in selector.select(0.05):
                    data = os.read(key.fd, _PART)
                    if not data:
                        selector.unregister(key.fd)
                    elif key.data == "status":
                        launched.status = (launched.status + data)[:_PART]
                    else:
                        self._outputs[key.data].add(data)
        for line in launched.status.splitlines():
            # Where nothing confines it, an agent can write here, too.
            with contextlib.suppress(ValueError, AttributeError):
                self._learn(json.loads(line))
        if not self.confined and not self.ended_for:
            self._error = f"the launcher ended: {self.stderr.strip()[-500:]}"

    def _learn(self, message: dict[str, Any]) -> None:
        self.confined = message.get("confined", self.confined)
        self.not_confined = message.get("not_confined", self.not_confined)
        self._error = message.get("error", self._error)
        self.exit_code = message.get("exit", self.exit_code)

    def _reason_to_end(self, deadline: float) -> str:
        if self._stop.is_set():
            return "the run was ended"
        if time.monotonic() > deadline:
            return f"stopped after {self.question.sampling.timeout_s:g} s"
        if any(tail.size > FLOOD_BYTES for tail in self._outputs.values()):
            return f"stopped after {FLOOD_BYTES >> 20} MiB of output"
        return ""

    def _keep(self) -> None:
        """Store logs for people."""
        if self.question.folder is None:
            return
        self.question.folder.mkdir(parents=True, exist_ok=True)
        kept = {"stdout.txt": self.stdout, "stderr.txt": self.stderr, folder.KERNEL: self.kernel}
        kept["agent.json"] = json.dumps({**self.facts, "ended_for": self.ended_for}, indent=2) + "\n"
        for name, text in kept.items():
            (self.question.folder / name).write_text(text, encoding="utf-8")


@dataclass
class _Launched:
    """A launcher and the ends of its pipes."""

    process: subprocess.Popen[bytes]
    outputs: dict[str, int]
    status: bytes = b""
    _ended: float | None = None

    @classmethod
    def start(cls, spec: Mapping[str, Any]) -> _Launched:
        status, end = os.pipe()
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kgbench.agents.launcher", str(end)],
                env={**environment(os.environ), "PYTHONPATH": str(IMPORT_ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[end],
                # A session of its own, so that Ctrl-C reaches only the coordinator.
                start_new_session=True,
            )
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(end)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(spec).encode() + b"\n")
            process.stdin.flush()
        outputs = {"stdout": process.stdout.fileno(), "stderr": process.stderr.fileno(), "status": status}
        return cls(process, outputs)

    def __enter__(self) -> _Launched:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        try:
            self.process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        os.close(self.outputs["status"])

    def end(self) -> None:
        """Kill the tree; the outputs end soon."""
        if self._ended is None:
            self._ended = time.monotonic()
            assert self.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(b"\n")
                self.process.stdin.close()

    @property
    def is_overdue(self) -> bool:
        return self._ended is not None and time.monotonic() > self._ended + KILL_S


@dataclass
class _Tail:
    """The end of an output, and how long the whole was."""

    size: int = 0
    _parts: deque[bytes] = field(default_factory=deque)
    _kept: int = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._kept += len(data)
        self._parts.append(data)
        while self._kept - len(self._parts[0]) >= OUTPUT_BYTES:
            self._kept -= len(self._parts.popleft())

    @property
    def text(self) -> str:
        return b"".join(self._parts)[-OUTPUT_BYTES:].decode(errors="replace")


def environment(own: Mapping[str, str]) -> dict[str, str]:
    """An agent's variables: the user's, keys too, without kgbench's, and without a GPU unless its command names one."""
    theirs = {name: value for name, value in own.items() if not name.startswith(_OURS)}
    return {**theirs, **_NO_GPU}


def _kernel_in(place: int) -> tuple[str, str]:
    """The kernel's text, and why there is none although there is something."""
    try:
        # Neither a link to somebody else's answer nor a pipe that never ends.
        fd = os.open(folder.KERNEL, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except FileNotFoundError:
        return "", "the agent removed kernel.py"
    except OSError as error:
        return "", f"kernel.py cannot be read: {error.strerror}"
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return "", "kernel.py is not a file"
        if facts.st_nlink != 1:
            return "", "kernel.py is a link to another file"
        with open(fd, "rb", closefd=False) as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_SOURCE_BYTES:
        return "", f"kernel.py has more than {MAX_SOURCE_BYTES} bytes"
    try:
        return data.decode(), ""
    except UnicodeDecodeError:
        return "", "kernel.py is not UTF-8 text"
