"""How long a referee waits for device memory that others hold."""

from __future__ import annotations

from typing import Final

ROOM_PAUSES: Final = (0.25,) * 80
"""Seconds between attempts to find as much memory free as a large call needs; after the last it is made anyway."""
CROWDED_PAUSES: Final = (0.5, 1.0, 2.0, 4.0)
"""Seconds between attempts at a call for which the referee found no memory."""
