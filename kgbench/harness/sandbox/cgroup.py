"""One control group (version 2) per worker, where the machine allows it: hard limits, and one write that kills all of
it.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PREFIX: Final = "kgbench-worker-"
"""Prefix of the names of workers' control groups."""
_CONTROLLERS: Final = ("pids", "memory")
"""Controllers that a worker's limits need."""


@dataclass(frozen=True)
class Group:
    """One worker's control group; its name contains its supervisor's process id."""

    path: Path

    @classmethod
    def create(cls, parent: str, supervisor_pid: int) -> Group:
        """Raises OSError."""
        path = Path(parent, f"{PREFIX}{supervisor_pid}")
        remove(parent, supervisor_pid)
        path.mkdir()
        return cls(path)

    def limit(self, memory_bytes: int, processes: int) -> None:
        """Set the limits for which there are controllers. Raises OSError."""
        values = {
            "memory.max": str(memory_bytes),
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": str(processes),
        }
        for name, value in values.items():
            if (self.path / name).exists():
                (self.path / name).write_text(value)

    def entrance(self) -> int:
        """A descriptor; a process that writes ``0`` to it moves in."""
        return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    def ran_out_of_memory(self) -> bool:
        with contextlib.suppress(OSError):
            lines = (self.path / "memory.events").read_text().splitlines()
            return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False

    def kill(self) -> None:
        """Kill all processes in the group, also those that left their parents. Does nothing where the kernel is too
        old.
        """
        with contextlib.suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self, deadline_s: float = 1.0) -> None:
        """Remove the group once it is empty; ignore errors."""
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.002)


def remove(parent: str, supervisor_pid: int) -> None:
    """Kill and remove the group of a supervisor that has ended, where there is one."""
    group = Group(Path(parent, f"{PREFIX}{supervisor_pid}"))
    if group.path.exists():
        group.kill()
        group.remove()


def find() -> tuple[str, tuple[str, ...]]:
    """The folder in which groups can be made and the controllers they get there. Raises OSError, saying why none."""
    failures = []
    for parent in _parents():
        try:
            controllers = _try(parent)
        except OSError as error:
            failures.append(f"{parent}: {os.strerror(error.errno or 0)}")
        else:
            _sweep(parent)
            return str(parent), controllers
    raise OSError(0, "; ".join(failures) or "no version 2 hierarchy is mounted")


def _parents() -> list[Path]:
    """This process's own group and the root of what is mounted, in that order."""
    roots = [
        Path(line.split()[4])
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
        if line.partition(" - ")[2].startswith("cgroup2 ")
    ]
    own = [
        line.partition("::")[2].strip("/")
        for line in Path("/proc/self/cgroup").read_text().splitlines()
        if line.startswith("0::")
    ]
    return list(dict.fromkeys([root / name for root in roots for name in own] + roots))


def _try(parent: Path) -> tuple[str, ...]:
    for name in _CONTROLLERS:
        # Refused where the group holds processes itself; then its children go without.
        with contextlib.suppress(OSError):
            if name not in (parent / "cgroup.subtree_control").read_text().split():
                (parent / "cgroup.subtree_control").write_text(f"+{name}")
    group = Group.create(str(parent), os.getpid())
    try:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.write(group.entrance(), b"0")
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(pid, 0)[1] != 0:
            raise PermissionError(1, "a process could not be moved in")
        if not (group.path / "cgroup.kill").exists():
            raise FileNotFoundError(2, "no cgroup.kill: needs Linux 5.14")
        return tuple((group.path / "cgroup.controllers").read_text().split())
    finally:
        group.remove()


def _sweep(parent: Path) -> None:
    """Remove groups that a killed session left: those whose supervisor has ended."""
    for path in parent.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX)
        if pid.isdigit() and not Path("/proc", pid).exists():
            remove(str(parent), int(pid))
