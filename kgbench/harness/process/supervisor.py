"""The trusted parent of one worker: starts it in the sandbox, drains its output, watches and kills its tree.

A supervisor holds a control channel to the referee. When that channel closes, for whatever reason, the worker's tree is
killed and the supervisor ends, so no worker outlives its run.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn

from kgbench.core import user_modules
from kgbench.core.files import remove_tree
from kgbench.harness.candidate import worker
from kgbench.harness.machine import processes, visible
from kgbench.harness.process import triton_driver
from kgbench.harness.sandbox import mounts, surroundings
from kgbench.harness.sandbox.cgroup import Group
from kgbench.harness.sandbox.enter import FIRST_UID, THREADS_PER_PROCESS, enter_supervisor, enter_worker
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.wire.forks import EndCause, EndWorker, WorkerEnded, WorkerForked, WorkerSpec
from kgbench.harness.wire.protocol import Channel, ChannelClosed, Message
from kgbench.harness.wire.typed import read_one_of

TICK_S: Final = 0.1
"""Seconds between two looks at the tree's memory and number of processes."""
WALKS: Final = 4
"""Processes of the tree whose maps are walked in one look. A walk takes 10 ms and waits for a fork to end, and of the
cores a supervisor gets no more than each process of a tree that forks without end.
"""
LOOKS_PER_WALK: Final = 10
"""Looks of which one walks through maps, where the tree holds more than its limit with what its processes inherited."""
TAIL_BYTES: Final = 64 << 10
"""Bytes kept of the end of a worker's output."""
TRITON_CACHE: Final = "TRITON_CACHE_DIR"
"""Triton's variable for its cache folder, which in a worker's own folder has this name in small letters."""
KILL_DEADLINE_S: Final = 10.0
"""Seconds within which a killed tree must be gone."""


class Supervisor:
    """Owns one worker process and everything that descends from it."""

    def __init__(self, control: Channel, spec: WorkerSpec, server: str, driver: triton_driver.Files) -> None:
        """``server``: the fork server's token. ``driver``: Triton's driver module, for the worker's cache."""
        self.control = control
        self.driver = driver
        self.limits = spec.limits
        self.spec = spec
        self.folder = Path(tempfile.mkdtemp(prefix=folder_prefix(server, os.getpid()))).resolve()
        self.group: Group | None = None
        self.tail: deque[bytes] = deque()
        self.tail_bytes = self.output_bytes = 0
        self.peak_bytes = 0
        self.killed_for: EndCause | None = None
        self.worker_pid = 0
        self.inherited_bytes = processes.memory_bytes([os.getpid()])[0]
        """Resident bytes of the fork server, which each process of the tree begins with."""
        self.looks = 0
        self.in_memory: tuple[str, ...] = ()
        """Folders of the worker's whose files are in memory, for it alone."""
        self.walked: dict[int, tuple[float, int]] = {}
        """For each process of the tree: when its memory maps were last read, and its memory in bytes."""

    def start(self, worker_socket: socket.socket) -> None:
        """Fork the worker. Raises OSError where the sandbox cannot be entered."""
        chosen = Plan.from_json(self.spec.plan)
        uid = FIRST_UID + os.getpid() % 50_000 if chosen.own_uid else None
        if uid is not None:
            os.chown(self.folder, uid, uid)
        entrance = self._make_group(chosen)
        if "mount" in chosen.namespaces and "private" in chosen.mounts:
            self.in_memory = (str(self.folder), *mounts.IN_MEMORY)
        enter_supervisor(chosen)
        self.log, log_end = os.pipe()
        self.worker_pid = os.fork()
        if self.worker_pid == 0:
            if entrance is not None:
                os.write(entrance, b"0")
            _become_worker(worker_socket, log_end, self.folder, self.spec, chosen, uid, self.driver)
        if entrance is not None:
            os.close(entrance)
        os.close(log_end)
        worker_socket.close()
        self.pidfd = os.pidfd_open(self.worker_pid)

    def _make_group(self, chosen: Plan) -> int | None:
        """A control group with the worker's limits; the descriptor by which it enters. Raises OSError."""
        if not chosen.cgroup:
            return None
        self.group = Group.create(chosen.cgroup, os.getpid())
        self.group.limit(self.limits.memory_bytes, self.limits.processes * THREADS_PER_PROCESS)
        return self.group.entrance()

    def watch(self) -> None:
        """Serve the referee until the worker has ended or the channel closes; then the tree is gone."""
        sources: list[Any] = [self.control, self.pidfd, self.log]
        try:
            while not self._ended():
                readable, _, _ = select.select(sources, [], [], TICK_S)
                if self.log in readable and not self._drain():
                    sources.remove(self.log)
                if self.control in readable:
                    self.control.fill()
                    while (message := self.control.pending()) is not None:
                        self._obey(message)
                self._check_limits()
        except ChannelClosed:
            self.killed_for = self.killed_for or EndCause.REFEREE_GONE
        if self.group is not None and self.group.ran_out_of_memory():
            self.killed_for = self.killed_for or EndCause.MEMORY
        status = self._kill_tree()
        self._drain()
        if self.group is not None:
            self.group.remove()
        remove_tree(self.folder)
        with contextlib.suppress(ChannelClosed):
            self.control.send(self._report(status).encode())

    def _report(self, status: int | None) -> WorkerEnded:
        """``status``: the worker's wait status."""
        return WorkerEnded(
            self.killed_for,
            returncode=None if status is None else os.waitstatus_to_exitcode(status),
            output_bytes=self.output_bytes,
            tail=b"".join(self.tail)[-TAIL_BYTES:].decode(errors="replace"),
            peak_mb=round(self.peak_bytes / 1e6, 1),
        )

    def _ended(self) -> bool:
        return bool(select.select([self.pidfd], [], [], 0)[0]) or bool(self.killed_for)

    def _obey(self, message: Message) -> None:
        self.killed_for = read_one_of(message, EndWorker).cause

    def _drain(self) -> bool:
        """Keep the end of what the worker printed, so that it never blocks; False once all its writers are gone."""
        os.set_blocking(self.log, False)
        for _ in range(64):
            try:
                data = os.read(self.log, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.output_bytes += len(data)
            self.tail.append(data)
            self.tail_bytes += len(data)
            while self.tail_bytes - len(self.tail[0]) > TAIL_BYTES:
                self.tail_bytes -= len(self.tail.popleft())
        return True

    def _check_limits(self) -> None:
        if self.output_bytes > self.limits.output_bytes:
            self.killed_for = self.killed_for or EndCause.OUTPUT
        pids = processes.descendants(os.getpid())
        if len(pids) > self.limits.processes:
            self.killed_for = self.killed_for or EndCause.PROCESSES
        if not self.killed_for and self.looks % LOOKS_PER_WALK == 0:
            # A tree that forks without end is ended before each of its processes is asked.
            written = processes.written_bytes([os.getpid(), *pids])
            self.killed_for = EndCause.WRITTEN if written > self.limits.written_bytes else None
        held = [processes.memory_bytes([pid]) for pid in pids]
        self.peak_bytes = max([self.peak_bytes, *(resident for _, resident in held)])
        self.looks += 1
        # What lies in files is no process's, and stays when a file is removed that is still open.
        limit = self.limits.memory_bytes - mounts.used_bytes(self.worker_pid, self.in_memory)
        if self.killed_for or sum(own for own, _ in held) <= limit:
            return
        # What all inherited counts once, until each of them has written to it.
        taken = sum(max(0, own - self.inherited_bytes) for own, _ in held)
        if (taken > limit or self.looks % LOOKS_PER_WALK == 0) and self._unshared_bytes(pids) > limit:
            self.killed_for = EndCause.MEMORY

    def _unshared_bytes(self, pids: list[int]) -> int:
        """Bytes that these processes need together, as far as is known after a few more walks through their maps."""
        now = time.monotonic()
        self.walked = {pid: self.walked.get(pid, (0.0, 0)) for pid in pids}
        for pid in sorted(pids, key=lambda pid: self.walked[pid][0])[:WALKS]:
            self.walked[pid] = (now, processes.unshared_bytes([pid]))
        return sum(needed for _, needed in self.walked.values())

    def _kill_tree(self) -> int | None:
        """Kill until nothing is left; the worker's wait status."""
        status: int | None = None
        deadline = time.monotonic() + KILL_DEADLINE_S
        if self._ended() and not self.killed_for:
            status = os.waitpid(self.worker_pid, 0)[1]
        if self.group is not None:
            self.group.kill()
        while time.monotonic() < deadline:
            processes.signal_tree(os.getpid(), signal.SIGKILL)
            try:
                while True:
                    pid, ended = os.waitpid(-1, os.WNOHANG)
                    if pid == 0:
                        break
                    status = ended if pid == self.worker_pid else status
            except ChildProcessError:
                return status
            time.sleep(0.002)
        return status


def folder_prefix(server: str, supervisor: int) -> str:
    """How the name of a worker's folder begins; by this the fork server finds it when the supervisor was killed."""
    return f"kgbench-worker-{server}-{supervisor}-"


def _become_worker(
    channel: socket.socket,
    log_end: int,
    folder: Path,
    spec: WorkerSpec,
    chosen: Plan,
    uid: int | None,
    driver: triton_driver.Files,
) -> NoReturn:
    """The worker's first steps, in the order that leaves nothing open to the candidate."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log_end, 1)
        os.dup2(log_end, 2)
        keep = os.dup2(channel.fileno(), 3)
        channel.detach()
        os.closerange(4, 65536)
        _set_environment(folder, spec)
        os.chdir(folder)
        stub = _stub(spec.stub)
        chosen = replace(chosen, modules=(*chosen.modules, *surroundings.as_called(spec.modules)))
        enter_worker(chosen, str(folder), tuple(spec.hidden), uid, spec.limits.processes, spec.without_gpu)
        triton_driver.give(driver, folder / TRITON_CACHE.lower())
        end = Channel(socket.socket(fileno=keep), accepts_fds=True)
        worker.run(stub(end, spec.device_kind, folder))
    except BaseException as error:
        print(f"worker could not start: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(70)


def _set_environment(folder: Path, spec: WorkerSpec) -> None:
    """Set a private home and private caches; the fork server's environment was an allow-list already."""
    for name in ("HOME", "TMPDIR"):
        os.environ[name] = str(folder)
    caches = (
        TRITON_CACHE,
        "TORCH_EXTENSIONS_DIR",
        "CUDA_CACHE_PATH",
        "CUPY_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
    )
    for name in caches:
        os.environ[name] = str(folder / name.lower())
    tempfile.tempdir = None
    if spec.modules:
        user_modules.offer(spec.modules)
    if spec.device_uuid:
        os.environ.update(visible.only(spec.device_uuid))


def run_supervisor(
    control: Channel, worker_socket: socket.socket, spec: WorkerSpec, server: str, driver: triton_driver.Files
) -> NoReturn:
    """The whole life of a supervisor, in a fresh fork of the fork server; ``server`` and ``driver`` as there."""
    supervisor = Supervisor(control, spec, server, driver)
    try:
        supervisor.start(worker_socket)
        control.send(WorkerForked().encode())
        supervisor.watch()
    except BaseException as error:
        with contextlib.suppress(ChannelClosed):
            control.send(WorkerEnded(EndCause.SUPERVISOR_FAILED, repr(error)).encode())
    finally:
        os._exit(0)


def _stub(path: str) -> type[worker.Stub]:
    """The class that answers requests in a worker, by its dotted path.

    It is imported in the worker's own process, so that a candidate's never contains baselines and references; and
    before the sandbox is entered, which hides kgbench from a candidate.
    """
    module, _, name = path.partition(":")
    found: type[worker.Stub] = getattr(importlib.import_module(module), name)
    return found
