"""The process that has torch and Triton imported and nothing run; it forks supervisors, and with them workers.

A fresh interpreter needs seconds to import torch; a fork of this one needs none. Its environment is final before
Python starts (``TRITON_INTERPRET`` is read on import), it has exactly one thread and has never touched a device: a
server that ran one parallel operation or one CUDA call would hang or break every child.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import secrets
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Final, NoReturn

from kgbench.core.files import remove_tree
from kgbench.harness.candidate.interpreter.patch import patch
from kgbench.harness.machine import processes, visible
from kgbench.harness.machine.cores import for_compiling
from kgbench.harness.process import triton_driver
from kgbench.harness.process.supervisor import folder_prefix, run_supervisor
from kgbench.harness.sandbox import cgroup, linux
from kgbench.harness.sandbox.probe import probe
from kgbench.harness.wire.forks import (
    EndSession,
    ForkCompiler,
    Forked,
    ForkReferee,
    ForkWorker,
    NotImported,
    Refused,
    ServerReady,
    SessionEnded,
)
from kgbench.harness.wire.protocol import Channel, ChannelClosed, ChannelTimeout, Message, ProtocolError
from kgbench.harness.wire.typed import Typed, read_one_of

PRELOADED: Final = (
    "numpy", "torch", "torch.fx.experimental.symbolic_shapes", "triton", "triton.language", "triton.experimental.gluon",
    visible.DRIVER, "cupy",
)  # fmt: skip
"""Modules imported before the first fork, where they are installed, so that no worker waits for them.

Each referee needs ``symbolic_shapes``, whose import takes seconds: the first operator on meta tensors loads it. Each
worker of a Triton kernel needs ``gluon``, which the first launch loads.
"""
FOR_COMPILING: Final = ("triton.experimental.gluon.nvidia", "triton.backends.nvidia.driver", "triton.compiler.compiler")
"""Modules that Triton imports when it first compiles for a GPU."""
NICENESS: Final = 10
"""How far what compiles ahead stands back behind what is being judged."""
END_S: Final = 1.0
"""Seconds that supervisors have to clear their workers once their session is over, before they are killed."""


class ForkServer:
    """Forks referees for the coordinator and supervisors for referees, and sweeps what a killed supervisor left behind.

    The coordinator may have several sessions. Each has a token, by which what was forked for it is ended.
    """

    def __init__(self, coordinator: Channel, cgroup_folder: str, driver: triton_driver.Files) -> None:
        """``driver``: Triton's driver module, for each worker's cache."""
        self.coordinator = coordinator
        self.cgroup_folder = cgroup_folder
        self.driver = driver
        self.token = secrets.token_hex(4)
        """Part of the names of its workers' folders, by which they are told from those of other fork servers."""
        self.channels: dict[Channel, str] = {coordinator: ""}
        """Clients by channel: the coordinator (empty), or a referee with its session's token."""
        self.supervisors: dict[int, str] = {}
        """The session's token by the supervisor's process id."""
        self.referees: dict[int, str] = {}
        """The session's token by the referee's process id."""

    def serve(self) -> None:
        """Serve until the coordinator is gone; then end everything that was forked here."""
        while self.coordinator in self.channels:
            readable, _, _ = select.select(list(self.channels), [], [], 0.2)
            self._reap()
            for channel in readable:
                if channel not in self.channels:  # its session was ended just now
                    continue
                try:
                    message, fds = channel.receive_with_fds(5.0)
                    channel.send(self._answer(channel, message, fds).encode())
                except (ChannelClosed, ChannelTimeout, ProtocolError):
                    channel.close()
                    del self.channels[channel]
        self._end_all()

    def _answer(self, channel: Channel, message: Message, fds: list[int]) -> Typed:
        """Raises ProtocolError where nobody may ask that here."""
        if channel is not self.coordinator:
            return self._fork(read_one_of(message, ForkWorker), fds, self.channels[channel])
        asked = read_one_of(message, ForkReferee, ForkCompiler, EndSession)
        if isinstance(asked, ForkReferee | ForkCompiler):
            return self._fork(asked, fds, asked.session)
        assert isinstance(asked, EndSession)
        return self._end_session(asked.session)

    def _fork(self, asked: ForkReferee | ForkWorker | ForkCompiler, fds: list[int], session: str) -> Forked | Refused:
        problem = unfit_to_fork()
        if problem:
            return Refused(problem)
        pid = os.fork()
        if pid == 0:
            for channel in self.channels:
                channel.close()
            os.setsid()
            if isinstance(asked, ForkReferee):
                _become_referee(asked, fds)
            if isinstance(asked, ForkCompiler):
                _stand_back()
            control, worker = Channel(socket.socket(fileno=fds[0])), socket.socket(fileno=fds[1])
            run_supervisor(control, worker, asked.spec, self.token, self.driver)
        if isinstance(asked, ForkReferee):
            self.channels[Channel(socket.socket(fileno=fds.pop(0)), accepts_fds=True)] = session
        for fd in fds:
            os.close(fd)
        (self.referees if isinstance(asked, ForkReferee) else self.supervisors)[pid] = session
        return Forked(pid)

    def _end_session(self, session: str) -> SessionEnded:
        """Like ``_end_all``, for one session. Other clients wait meanwhile."""
        for channel in [each for each, token in self.channels.items() if token == session]:
            channel.close()  # what a referee still asked for is not forked any more
            del self.channels[channel]
        for pid in _of(self.referees, session):
            processes.signal_one(pid, signal.SIGKILL)
        deadline = time.monotonic() + END_S
        while left := [*_of(self.referees, session), *_of(self.supervisors, session)]:
            if time.monotonic() > deadline:
                for pid in left:
                    processes.signal_tree(pid, signal.SIGKILL)
                    processes.signal_one(pid, signal.SIGKILL)
            time.sleep(0.002)
            self._reap()
        return SessionEnded()

    def _end_all(self) -> None:
        """Referees first, so that nothing new is asked for; supervisors end with their workers when those are gone."""
        for pid in self.referees:
            processes.signal_one(pid, signal.SIGKILL)
        deadline = time.monotonic() + END_S
        while self.supervisors and time.monotonic() < deadline:
            self._reap()
            time.sleep(0.01)
        processes.signal_tree(os.getpid(), signal.SIGKILL)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid in self.supervisors and status:
                    self._clear_after(pid)
                self.supervisors.pop(pid, None)
                self.referees.pop(pid, None)
        # A supervisor that was killed from inside leaves orphans; they are this process's children now.
        for child in processes.children(os.getpid()):
            if child not in self.supervisors and child not in self.referees:
                processes.signal_tree(child, signal.SIGKILL)
                processes.signal_one(child, signal.SIGKILL)

    def _clear_after(self, supervisor: int) -> None:
        """Remove what a supervisor that was killed could not."""
        if self.cgroup_folder:
            cgroup.remove(self.cgroup_folder, supervisor)
        for folder in Path(tempfile.gettempdir()).glob(f"{folder_prefix(self.token, supervisor)}*"):
            remove_tree(folder)


def _of(pids: dict[int, str], session: str) -> list[int]:
    return [pid for pid, token in pids.items() if token == session]


def _become_referee(asked: ForkReferee, fds: list[int]) -> NoReturn:
    """The rest of a fork's life. ``fds``: the fork server's end (not its own), then the referee's own, then its log."""
    try:
        linux.die_with_parent()
        os.close(fds[0])
        if asked.device_uuid:
            os.environ.update(visible.only(asked.device_uuid))
        os.environ["PYTORCH_KERNEL_CACHE_PATH"] = asked.cache
        log = fds[4]
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        # Imported in the fork alone: it knows answers, and the fork server's other children must not.
        module, _, function = asked.entry.partition(":")
        getattr(importlib.import_module(module), function)(fds[1], fds[2], fds[3])
    except BaseException:
        # A log on a full disk takes nothing; a fork that went on from here would serve as a second fork server.
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(0)


def _stand_back() -> None:
    """For what compiles ahead, which no turn stops: it may use its half of the cores, and those behind everybody else.
    A worker's sandbox keeps it from changing either.
    """
    os.nice(NICENESS)
    os.sched_setaffinity(0, for_compiling(os.sched_getaffinity(0)))


def _prepare_to_compile() -> triton_driver.Files:
    """Once for all workers what each would do before its first kernel: imports, a hash of Triton's files, a driver."""
    if patch() or "triton" not in sys.modules:
        return {}
    for name in FOR_COMPILING:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        function = getattr(sys.modules.get(name), "triton_key", None)
        # Triton keeps the answer; where it is missing or has moved, each worker finds it out by itself.
        if callable(function):
            function()
            break
    return triton_driver.built()


def unfit_to_fork() -> str:
    """Why a fork now would be broken; empty when all is well."""
    from kgbench.harness.wire.device import GPU  # torch is there by now, and was not when this module was imported

    if GPU.is_touched():
        return "the fork server has initialised CUDA"
    threads = len(os.listdir("/proc/self/task"))
    return "" if threads == 1 else f"the fork server has {threads} threads"


def main(fd: int) -> None:
    """``python -m kgbench.harness.process.fork_server FD``: import, say so with the sandbox plan, then serve."""
    linux.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=fd), accepts_fds=True)
    versions = {}
    for name in PRELOADED:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            continue
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            channel.send(NotImported(name, str(error)).encode())
            continue
        if "." not in name:
            versions[name] = str(getattr(module, "__version__", ""))
    importlib.import_module("kgbench.harness.candidate.worker")
    driver = _prepare_to_compile()
    chosen = probe()
    channel.send(ServerReady(versions, chosen.to_json(), unfit_to_fork()).encode())
    ForkServer(channel, chosen.cgroup, driver).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
