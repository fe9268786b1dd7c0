"""Finds and signals process trees. Reads the kernel's list of children; psutil where the kernel does not keep one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TextIO

import psutil

STOP_DEADLINE_S: Final = 0.03
"""Seconds to wait until processes stand still; one inside a driver call stops when that returns."""


def own_lines() -> TextIO:
    """What is written for the parent's eyes: from here on all that others print goes to standard error."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return lines


def children(pid: int) -> list[int]:
    """Direct children of all threads of a process; empty when it is gone."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [int(child) for task in tasks for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except FileNotFoundError:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
    except OSError:
        pass
    return []


def descendants(pid: int) -> list[int]:
    """Every live process below ``pid``, parents first."""
    found = children(pid)
    for child in found:
        found += [grandchild for grandchild in children(child) if grandchild not in found]
    return found


def signal_one(pid: int, number: int) -> None:
    """Signal a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_tree(pid: int, number: int) -> None:
    """Signal every descendant of ``pid``; those that are gone already are passed over."""
    for child in descendants(pid):
        signal_one(child, number)


def stop_trees(roots: list[int]) -> None:
    """Stop every descendant of these, also those that are forked meanwhile, and wait until they stand still."""
    stopped: set[int] = set()
    while new := {child for root in roots for child in descendants(root)} - stopped:
        for child in new:
            signal_one(child, signal.SIGSTOP)
        stopped |= new
        await_stopped(new)


def await_stopped(pids: set[int] | list[int]) -> None:
    """Wait until no process of these runs any more, at most STOP_DEADLINE_S."""
    deadline = time.monotonic() + STOP_DEADLINE_S
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(50e-6)


def worked_us(pids: Iterable[int]) -> float:
    """Processor time of all threads of these processes so far; what has no account of it counts as nothing."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, ValueError, IndexError):
                    total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
    return total / 1e3


def _runs(pid: int) -> bool:
    """Whether a process exists and is neither stopped nor dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TtZXx"
    except (OSError, IndexError):
        return False


def unshared_bytes(pids: list[int]) -> int:
    """Bytes these processes need together, pages shared by fork counted once. Slow: the kernel walks their maps."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
            total += int(fields["Pss_Anon"].split()[0]) * 1024
    return total


def peak_bytes(pid: int) -> int:
    """The largest resident size a process has had; 0 when it is gone."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0


def memory_bytes(pids: list[int]) -> tuple[int, int]:
    """Bytes that these processes hold alone, summed, and the largest resident size among them."""
    page = os.sysconf("SC_PAGE_SIZE")
    own = resident = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{pid}/statm").read_text().split()
            own += (int(fields[1]) - int(fields[2])) * page
            resident = max(resident, int(fields[1]) * page)
    return own, resident
