"""How a referee waits for device memory that others hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Final, TypeVar

import torch

from kgbench.harness.machine.timing_lock import TimingLock

_T = TypeVar("_T")
ROOM_PAUSES: Final = (0.25,) * 80
"""Seconds between attempts to find as much memory free as a large call needs; after the last it is made anyway."""
CROWDED_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds between attempts at something for which the referee found no memory."""


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
