"""Which processor cores are for what while a case is timed.

Half of a session's cores may go on compiling in a turn (``for_compiling``). Of the other half one core is for the
workers of both sides, and the referee keeps to the rest: where calls are launched directly, their time is the host's,
and a side that the scheduler happens to leave on a worse core comes out slower in all windows of a case.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import psutil

from kgbench.harness.machine import processes

LEAST_CORES: Final = 8
"""Cores of a session below which none is set apart for the workers."""


def for_compiling(cores: Collection[int]) -> set[int]:
    """The cores on which candidates are compiled ahead, which no turn stops."""
    ordered = sorted(cores)
    return set(ordered[len(ordered) // 2 :])


def core_for_workers(cores: Collection[int], last: Iterable[int]) -> int | None:
    """The core for both sides' workers; None where there are too few cores.

    Args:
        cores: on which the session may run.
        last: cores that would do, best first: on which a worker ran last. A core for compiling does not.
    """
    if len(cores) < LEAST_CORES:
        return None
    free = set(cores) - for_compiling(cores)
    return next((core for core in last if core in free), max(free))


@contextlib.contextmanager
def shared_core(supervisors: Iterable[int]) -> Iterator[None]:
    """Inside the block the trees below these processes run on one core, and this process on others.

    The core is one on which the scheduler has just had one of them, so that sessions that share cores take different
    ones. Where the system refuses to place a worker, all run where they may otherwise.
    """
    cores, trees = os.sched_getaffinity(0), [*supervisors]
    core = core_for_workers(cores, _last_cores(_below(trees)))
    if core is None:
        yield
        return
    try:
        if _place(_below(trees), {core}):
            os.sched_setaffinity(0, cores - for_compiling(cores) - {core})
        else:
            _place(_below(trees), cores)
        yield
    finally:
        os.sched_setaffinity(0, cores)
        _place(_below(trees), cores)


def usable(threads: Iterable[int]) -> set[int]:
    """The cores on which this process or one of these threads may run."""
    found = os.sched_getaffinity(0)
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            found |= os.sched_getaffinity(thread)
    return found


def _last_cores(pids: Iterable[int]) -> Iterator[int]:
    """Where each process's main thread ran last."""
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid).cpu_num()


def _below(supervisors: Iterable[int]) -> list[int]:
    return [pid for each in supervisors for pid in processes.descendants(each)]


def _place(pids: Iterable[int], cores: Collection[int]) -> bool:
    """Let all threads of processes run on these cores alone; False where the system refuses that for one."""
    placed = True
    for _, thread in processes.threads(pids):
        try:
            os.sched_setaffinity(thread, cores)
        except ProcessLookupError:
            continue
        except OSError:
            placed = False
    return placed
