"""How long timing one case may take, and how much memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Limits of one case's timing on a kind of device."""

    window_us: float
    """Time in µs that a window's calls should fill."""
    case_s: float
    """Seconds for which a case may hold the timing lock."""
    memory_bytes: int
    """Bytes of a window's calls."""
    window_deadline_s: float
    """Seconds after which a window's worker has failed."""
