"""Which processor cores are for what while a case is timed.

Half of a session's cores may go on compiling in a turn (``for_compiling``). The others are shared out among its
devices (``for_turns``). In a turn one of them is for the workers of both sides, and the referee keeps to the rest.
Where calls are launched directly, their time is the host's, and a side that the scheduler happens to leave on a worse
core comes out slower in all windows of a case.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Collection, Iterable, Iterator
from typing import Final

import psutil

from kgbench.harness.machine import processes

LEAST_CORES: Final = 4
"""Cores of a device's turns below which none is set apart for the workers."""


def for_compiling(cores: Collection[int]) -> set[int]:
    """The cores on which candidates are compiled ahead, which no turn stops."""
    ordered = sorted(cores)
    return set(ordered[len(ordered) // 2 :])


def for_turns(cores: Collection[int], device: int, devices: int) -> tuple[int, ...]:
    """The cores for one device's turns, of a session's; none where there are too few.

    Args:
        device: its place among the session's ``devices``, from 0.
    """
    ordered = sorted(set(cores) - for_compiling(cores))
    share = len(ordered) // devices
    return tuple(ordered[device * share :][:share]) if share >= LEAST_CORES else ()


@contextlib.contextmanager
def shared_core(supervisors: Iterable[int], cores: Collection[int]) -> Iterator[None]:
    """Inside the block the trees below these processes run on one of ``cores``, and this process on the others.

    It is one on which the scheduler has just had a worker, if that is among them, so that sessions that know nothing of
    each other take different ones. Where the system refuses to place a worker, all run where they may otherwise, as
    where there are no ``cores``.
    """
    if not cores:
        yield
        return
    before, roots = os.sched_getaffinity(0), [*supervisors]
    pids = processes.below(roots)
    core = next((each for each in _last_cores(pids) if each in cores), random.choice([*cores]))
    try:
        if _place(pids, {core}):
            os.sched_setaffinity(0, {*cores} - {core})
        else:
            _place(pids, before)
        yield
    finally:
        os.sched_setaffinity(0, before)
        # Also what was started meanwhile.
        _place(processes.below(roots), before)


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
