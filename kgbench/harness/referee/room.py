"""How long a referee waits for device memory that others hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kgbench.harness.machine.timing_lock import TimingLock

ROOM_PAUSES: Final = (0.25,) * 80
"""Seconds between attempts to find as much memory free as a large call needs; after the last it is made anyway."""
CROWDED_PAUSES: Final = (0.5, 1.0, 2.0)
"""Seconds between attempts at a call for which the referee found no memory."""


def crowded_pauses(turns: TimingLock) -> Sequence[float]:
    """Seconds between attempts; none where no other referee can give memory back."""
    return () if turns.is_alone else CROWDED_PAUSES
