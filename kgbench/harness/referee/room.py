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


def tried_again(turns: TimingLock, attempt: Callable[[], _T], give_back: Callable[[], None]) -> _T:
    """What an attempt returns, tried again where memory ran out and another referee of the device can give some back.

    ``give_back`` gives back this referee's own before each further attempt. Raises OutOfMemoryError in the end.
    """
    for pause_s in () if turns.is_alone else CROWDED_PAUSES:
        with contextlib.suppress(torch.OutOfMemoryError):
            return attempt()
        give_back()
        turns.pause(pause_s)
    return attempt()
