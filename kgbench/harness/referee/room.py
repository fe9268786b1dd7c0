"""How a referee waits for device memory that others hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

import torch

from kgbench.harness.machine import trace
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.resources import Resources
from kgbench.harness.wire.device import GPU
from kgbench.harness.workers.started import Worker
from kgbench.problem.cases import Case
from kgbench.problem.model import Overload

_T = TypeVar("_T")
ROOM_BYTES: Final = 8e9
"""Bytes that judging a module's call takes from which on it waits for room."""
ROOM_PAUSES: Final = (0.25,) * 20
"""Seconds between two looks for as much free memory as a large call needs; after the last it is made anyway."""
CROWDED_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds between attempts at something for which the referee found no memory."""


def give_back(resources: Resources, worker: Worker) -> None:
    """What this referee and its candidate hold for the calls before, for others on this device."""
    if worker.handle.alive():
        worker.side.unmap()
    if resources.device.type == "cuda":
        GPU.release_cached()


@contextlib.contextmanager
def room(resources: Resources, worker: Worker, nbytes: float) -> Iterator[None]:
    """Inside the block nobody else on the device does what takes this much memory; others' ordinary calls go on.

    It begins once the device has ``nbytes`` free, or ``ROOM_PAUSES`` are over: what is needed is an upper bound.
    """
    give_back(resources, worker)
    with resources.turns.room():
        with trace.span("wait for free memory", needed_gb=round(nbytes / 1e9, 1)):
            for pause_s in ROOM_PAUSES:
                if resources.device.type != "cuda" or GPU.free_bytes() >= nbytes:
                    break
                resources.turns.pause(pause_s)
        try:
            yield
        finally:
            give_back(resources, worker)


def room_of_module(
    resources: Resources, worker: Worker, overload: Overload, cases: Iterable[Case]
) -> contextlib.AbstractContextManager[None]:
    """Room for the largest of these calls of a module; nothing to wait for where they are small, or of an operator."""
    if overload.module is None:
        return contextlib.nullcontext()
    nbytes = max((overload.module.needed_bytes(case.variables.get("batch")) for case in cases), default=0.0)
    return room(resources, worker, nbytes) if nbytes >= ROOM_BYTES else contextlib.nullcontext()


def tried_again(turns: TimingLock, attempt: Callable[[int], _T], give_back: Callable[[], None]) -> _T:
    """What an attempt returns, tried again where memory ran out and another referee of the device can give some back.

    ``attempt`` is told its number, from 0. ``give_back`` gives back this referee's own before each further one. Raises
    OutOfMemoryError in the end.
    """
    pauses_s = () if turns.is_alone else CROWDED_PAUSES
    for number, pause_s in enumerate(pauses_s):
        with contextlib.suppress(torch.OutOfMemoryError):
            return attempt(number)
        give_back()
        turns.pause(pause_s)
    return attempt(len(pauses_s))
