"""The library's windows of a case, kept for later candidates of the same problem on the same device. No torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from kgbench.core.types import Timing, Window
from kgbench.harness.clock.estimate import SLOW, overhead


@dataclass(frozen=True)
class LibraryTimes:
    """What the library's windows of a case took beside an earlier candidate; stands in for new ones."""

    windows: tuple[Window, ...]
    """Windows of the kinds ``window`` and ``single``."""
    overhead_us: float
    call_us: float
    queued: bool

    @property
    def calls(self) -> int:
        return next(window.calls for window in self.windows if window.kind == "window")

    def replayed(self, kind: str, number: int, overhead_us: float) -> Window:
        """Window ``number`` of a kind, from the first again after the last, with what a window costs now."""
        windows = [window for window in self.windows if window.kind == kind]
        window = windows[number % len(windows)]
        shift = overhead_us - self.overhead_us
        return replace(window, done_us=window.done_us + shift, secured_us=window.secured_us + shift)

    @classmethod
    def from_timing(cls, timing: Timing) -> LibraryTimes | None:
        """None where it holds none of its own, or beside a candidate so slow that windows of both are short."""
        mine = tuple(w for w in timing.windows if w.side == "library" and w.kind in ("window", "single"))
        # The first chose the number of calls where there is an odd one with fewer calls.
        most = max((window.calls for window in mine), default=0)
        mine = tuple(window for window in mine if window.kind == "single" or window.calls == most)
        overheads = [window for window in timing.windows if window.kind == "overhead"]
        if timing.library_shared or timing.library_call_us is None or not overheads:
            return None
        if timing.candidate_us > SLOW * timing.library_us:
            return None
        # Windows of one call are single calls.
        if {window.kind for window in mine} != ({"window"} if most == 1 else {"window", "single"}):
            return None
        return cls(mine, overhead(overheads, timing.queued), timing.library_call_us, timing.queued)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LibraryTimes:
        return cls(**{**data, "windows": tuple(Window(**window) for window in data["windows"])})
