"""The fork server as a program sees it: an object that starts the process, has referees forked, and ends it.

Starting one takes seconds, since it imports torch and Triton. So several sessions of a program may share one:

    with ForkServer("cpu") as server:
        with Session(Settings(device="cpu"), server=server) as session: ...

Shared is only what ``Surroundings`` says. Seed, deadlines, folders, limits and logs are each session's own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from kgbench.core.errors import MachineError
from kgbench.core.kinds import DeviceKind
from kgbench.core.paths import IMPORT_ROOT
from kgbench.harness.machine import processes
from kgbench.harness.machine.environment import environment
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.session.errors import ProcessLost, SessionClosed
from kgbench.harness.session.logs import Logs
from kgbench.harness.wire.forks import (
    EndSession,
    ForkCompiler,
    Forked,
    ForkReferee,
    NotImported,
    Refused,
    ServerReady,
    SessionEnded,
)
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout, ProtocolError, pair
from kgbench.harness.wire.typed import Typed, read_one_of

START_S: Final = 180.0
"""Seconds that a fork server may take to import torch and Triton."""
ANSWER_S: Final = 30.0
"""Seconds in which a fork server must answer a request."""
EXIT_S: Final = 3.0
"""Seconds that a fork server has to end what it forked, before it is killed."""
MAX_SERVERS: Final = 20
"""Times that one fork server may be started again before it is given up."""


@dataclass(frozen=True)
class Surroundings:
    """What a fork server takes over from the program that starts it. Nothing of it can change afterwards."""

    python: str
    cores: frozenset[int]
    """CPU cores on which the server and all that it forks may run."""
    variables: Mapping[str, str]
    """Environment variables."""

    @classmethod
    def present(cls, device_kind: DeviceKind) -> Surroundings:
        """The surroundings of a fork server that this program would start now."""
        variables = environment(device_kind)
        named = filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))
        variables["PYTHONPATH"] = os.pathsep.join((str(IMPORT_ROOT), *map(os.path.abspath, named)))
        return cls(sys.executable, frozenset(os.sched_getaffinity(0)), variables)


class ForkServer:
    """Starts when a session needs it and again when it died, until it is closed. May be used from many threads.

    Args:
        device_kind: ``cpu`` or ``cuda``; sessions on another kind of device start a fork server of their own.
        log_dir: where it writes what it prints, ``forkserver.log``; None discards it.
    """

    def __init__(self, device_kind: str, *, log_dir: Path | None = None) -> None:
        self.surroundings = Surroundings.present(DeviceKind(device_kind))
        self.plan = Plan((), False, False)
        """The sandbox plan of this machine; known once the server has started."""
        self.versions: dict[str, str] = {}
        """Versions of the modules it has imported."""
        self.not_imported: dict[str, str] = {}
        """Why a module could not be imported, by module."""
        self._logs = Logs(log_dir)
        self._lock = threading.RLock()
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._closed = False

    def __enter__(self) -> ForkServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The server's process id; None while it does not run."""
        process = self._process
        return None if process is None else process.pid

    def peak_bytes(self) -> int | None:
        """Its largest resident size; None while it does not run."""
        pid = self.pid
        return None if pid is None else processes.peak_bytes(pid)

    def fits(self, device_kind: str) -> bool:
        """Whether a session that begins now would start one with the same surroundings."""
        return self.surroundings == Surroundings.present(DeviceKind(device_kind))

    def start(self) -> None:
        """Return once it is ready. One that does not start is replaced once.

        Raises MachineError, and SessionClosed after ``close``.
        """
        with self._lock:
            if self._closed:
                raise SessionClosed("KGB316", "the fork server was closed")
            if self._channel is not None:
                return
            try:
                self._start()
            except BaseException:
                self._stop()
                raise

    def fork(self, asked: ForkReferee, fds: Sequence[int], check_open: Callable[[], None]) -> int:
        """The process id of a referee that was forked; a fork server that has died is replaced.

        ``check_open`` is called before each try. Raises what that raises, MachineError, SessionClosed after ``close``.
        """
        with self._lock:
            for _ in range(2):
                check_open()
                if self._channel is None and self._starts > MAX_SERVERS:
                    raise MachineError("KGB313", f"{MAX_SERVERS} fork servers died{self._logs.tail('forkserver')}")
                self.start()
                # Where this fails, its referees died with it; whoever waits for one of them finds out.
                reply = self._ask(asked, fds, Forked, Refused)
                if isinstance(reply, Forked):
                    return reply.pid
                self._stop()
            raise MachineError("KGB314", f"the fork server does not answer{self._logs.tail('forkserver')}")

    def try_fork(self, asked: ForkCompiler, fds: Sequence[int]) -> bool:
        """Whether what compiles ahead was forked. Without it candidates are judged all the same."""
        with self._lock:
            return self._channel is not None and isinstance(self._ask(asked, fds, Forked, Refused), Forked)

    def end_session(self, token: str) -> None:
        """End what was forked for a session, and return once nothing of it is left."""
        with self._lock:
            if self._channel is not None and self._ask(EndSession(token), (), SessionEnded) is None:
                self._stop()

    def close(self) -> None:
        """End it with everything that it forked, for whichever session."""
        with self._lock:
            self._closed = True
            self._stop()

    def _ask(self, asked: Typed, fds: Sequence[int], *answers: type[Typed]) -> Typed | None:
        """The server's answer, one of these classes; None where there is none."""
        assert self._channel is not None
        try:
            self._channel.send(asked.encode(), fds)
            return read_one_of(self._channel.receive(ANSWER_S), *answers)
        except (ChannelClosed, ChannelTimeout, ProtocolError):
            return None
        except BaseException:
            self._stop()  # else the next one who asks would get this answer
            raise

    def _start(self) -> None:
        """Raises MachineError."""
        try:
            self._try_start()
        except ProcessLost:
            self._stop()
            try:
                self._try_start()
            except ProcessLost as error:
                raise MachineError("KGB310", str(error)) from None

    def _try_start(self) -> None:
        """Raises ProcessLost when it is not ready in time, and MachineError."""
        self._starts += 1
        server_end, own_end = pair()
        try:
            self._process = self._spawned(server_end.fileno())
        finally:
            server_end.close()
        self._channel = Channel(own_end)
        try:
            while isinstance(told := self._told(), NotImported):
                self.not_imported[told.module] = told.reason
        except (ChannelClosed, ChannelTimeout, ProtocolError) as error:
            words = f"the fork server did not start: {error}{self._logs.tail('forkserver')}"
            raise ProcessLost(words) from None
        if told.unfit:
            raise MachineError("KGB311", f"the fork server is not fit to fork: {told.unfit}")
        self.plan = Plan.from_json(told.plan)
        self.versions = told.versions

    def _told(self) -> NotImported | ServerReady:
        """Read what the server reports while it starts. Raises ChannelClosed, ChannelTimeout, ProtocolError."""
        assert self._channel is not None
        return read_one_of(self._channel.receive(START_S), NotImported, ServerReady)

    def _spawned(self, fd: int) -> subprocess.Popen[bytes]:
        with self._logs.opened("forkserver") as output:
            # In a session of its own, so that Ctrl-C reaches only the coordinator.
            return subprocess.Popen(
                # Outside the user's folder: a file numpy.py there is nobody's numpy.
                [self.surroundings.python, "-P", "-m", "kgbench.harness.process.fork_server", str(fd)],
                cwd="/",
                env=dict(self.surroundings.variables),
                pass_fds=[fd],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _stop(self) -> None:
        """End the process with everything that it forked."""
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            channel.close()
        if process is None:
            return
        below = processes.descendants(process.pid)
        try:
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            below = [*below, *processes.descendants(process.pid)]
            process.kill()
            process.wait()
        for pid in below:
            processes.signal_one(pid, signal.SIGKILL)
