"""The process that has torch and Triton imported and nothing run; it forks a keeper, and with it a worker, on demand.

A fresh interpreter needs seconds to import torch; a fork of this one needs none. Its environment is final before
Python starts (``TRITON_INTERPRET`` is read on import), it has exactly one thread and has never touched a device: a
server that ran one parallel operation or one CUDA call would hang or break every child.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import select
import signal
import socket
import sys
from typing import Any, Final

from kgbench.harness import keeper, processes, sandbox
from kgbench.harness.protocol import Channel, ChannelClosed, Message
from kgbench.harness.sandbox import cgroup

PRELOADED: Final = ("numpy", "torch", "triton", "triton.language", "cuda.bindings.driver", "cupy")


class ForkServer:
    """Forks keepers for one referee, reaps them, and sweeps what a killed keeper left behind."""

    def __init__(self, channel: Channel, cgroup_folder: str) -> None:
        self.channel = channel
        self.cgroup_folder = cgroup_folder
        self.keepers: set[int] = set()

    def serve(self) -> None:
        while True:
            readable, _, _ = select.select([self.channel], [], [], 0.2)
            self._reap()
            if readable:
                try:
                    message, fds = self.channel.receive_with_fds(5.0)
                except ChannelClosed:
                    return
                self.channel.send(self._spawn(message, fds))

    def _spawn(self, message: Message, fds: list[int]) -> Message:
        problem = unfit_to_fork()
        if problem:
            return {"error": problem}
        pid = os.fork()
        if pid == 0:
            self.channel.close()
            os.setsid()
            control = Channel(socket.socket(fileno=fds[0]))
            keeper.run_keeper(control, socket.socket(fileno=fds[1]), message["spec"])
        for fd in fds:
            os.close(fd)
        self.keepers.add(pid)
        return {"pid": pid}

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, _ = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid in self.keepers and self.cgroup_folder:
                    cgroup.remove(self.cgroup_folder, pid)
                self.keepers.discard(pid)
        # A keeper that was killed from inside leaves orphans; they are this process's children now.
        for child in processes.children(os.getpid()):
            if child not in self.keepers:
                processes.signal_tree(child, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)


def unfit_to_fork() -> str:
    """Why a fork now would be broken; empty when all is well."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        return "the fork server has initialised CUDA"
    threads = len(os.listdir("/proc/self/task"))
    return "" if threads == 1 else f"the fork server has {threads} threads"


def main(fd: int) -> None:
    """``python -m kgbench.harness.forkserver FD``: import, say so with the sandbox plan, then serve."""
    sandbox.become_subreaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=fd), accepts_fds=True)
    versions = {}
    for name in PRELOADED:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            continue
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            channel.send({"missing": name, "reason": str(error)})
            continue
        if "." not in name:
            versions[name] = str(getattr(module, "__version__", ""))
    importlib.import_module("kgbench.harness.worker")
    chosen = sandbox.plan()
    channel.send({"ready": True, "versions": versions, "plan": chosen.to_json(), "unfit": unfit_to_fork()})
    ForkServer(channel, chosen.cgroup).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
