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
from kgbench.problem.model import CaseTemplate, Overload, Problem

_T = TypeVar("_T")
ROOM_BYTES: Final = 8e9
"""Bytes that judging a module's call takes from which on it reserves room."""
ROOM_SHARE: Final = 0.6
"""Share of a device's memory that all calls together may reserve; the rest is for everybody's ordinary calls."""
ROOM_PAUSES: Final = (0.25,) * 20
"""Seconds between two looks for as much free memory as a large call needs; after the last it is made anyway."""
CROWDED_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds between attempts at something for which the referee found no memory."""


def give_back(resources: Resources, worker: Worker | None) -> None:
    """What this referee and its candidate, if there is one, hold for the calls before, for others on this device."""
    if worker is not None and worker.handle.alive():
        worker.side.unmap()
    if resources.device.type == "cuda":
        GPU.release_cached()


def most_room(resources: Resources) -> float:
    """Bytes that all calls of the device together may reserve."""
    return 1e9 * ROOM_SHARE * resources.memory_gb


@contextlib.contextmanager
def room(resources: Resources, worker: Worker | None, nbytes: float) -> Iterator[None]:
    """Reserve this much memory inside the block; others' ordinary calls go on, and what fits beside it.

    It begins once the device has ``nbytes`` free, or ``ROOM_PAUSES`` are over: what is needed is an upper bound.
    """
    give_back(resources, worker)
    with resources.turns.reserved(nbytes, most_room(resources)):
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
    resources: Resources, worker: Worker | None, overload: Overload, cases: Iterable[Case | CaseTemplate]
) -> contextlib.AbstractContextManager[None]:
    """Room for the largest of these calls of a module; nothing to wait for where they are small, or of an operator."""
    nbytes = max((module_bytes(overload, case) for case in cases), default=0.0)
    return room(resources, worker, nbytes) if nbytes >= ROOM_BYTES else contextlib.nullcontext()


def room_to_begin(resources: Resources, problem: Problem) -> contextlib.AbstractContextManager[None]:
    """Room for finding out what a module's outputs depend on, in its first call; nothing to wait for elsewhere."""
    module = next((overload for overload in problem.overloads if overload.module is not None), None)
    return contextlib.nullcontext() if module is None else room_of_module(resources, None, module, module.check[:1])


def module_bytes(overload: Overload, case: Case | CaseTemplate) -> float:
    """Bytes that judging a module's call takes; 0 for an operator, whose large calls are of a phase of their own."""
    return 0.0 if overload.module is None else overload.module.needed_bytes(case.variables.get("batch"))


def is_costly(overload: Overload, case: Case | CaseTemplate) -> bool:
    """Whether judging a module's call takes so much memory that it reserves room, and seconds."""
    return module_bytes(overload, case) >= ROOM_BYTES


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
