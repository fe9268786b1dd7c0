"""Finds and signals process trees. Reads the kernel's list of children; psutil where the kernel does not keep one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil


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


def signal_tree(pid: int, number: int) -> None:
    """Signal every descendant of ``pid``; those that are gone already are passed over."""
    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, number)


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
