"""What times of windows say: the time of a call, the ratio of both sides, whether more windows are needed.

Pure functions, no torch.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import DeviceKind
from kgbench.core.types import Window
from kgbench.harness.clock.statistics import half_width

LEAST_US: Final = 1e-3
"""Shortest time of a call in µs; what is shorter counts as this, so that a ratio exists."""
MIN_PAIRS: Final = 6
"""Pairs of windows after which timing a case may end because its interval is narrow."""
MAX_PAIRS: Final = 16
"""Pairs of windows after which timing a case ends."""
TARGET_HALF_WIDTH: Final = 0.004
"""Half-width of the log ratio's interval below which no more pairs are needed."""
TARGET_NOISE_SHARE: Final = 0.5
"""The same as a share of the null test's noise: both add up as squares, so the interval grows by 12 % at most."""
TARGET_DISTANCE_SHARE: Final = 0.05
"""The same as a share of the log ratio itself: far from 1 an interval of that width decides nothing."""
SLOW: Final = 2.0
"""Ratio candidate / library above which a candidate is slow: windows have as many calls as the slower side has time
for, so the library's are then too short to be kept, and no probe window follows a pair."""
SINGLE_EXCESS: Final = 0.25
"""Share of a call's time in a window by which a single call must be longer to be scored in its place."""
SINGLE_EXCESS_US: Final = {"cuda": 10.0, "cpu": 200.0}
"""Time in µs, per kind of device, by which a single call must be longer to be scored in its place."""
Pair = tuple[Window, Window]
"""A window of the library and one of the candidate, on the same inputs."""


class Unmeasurable(Exception):
    """The time is too short for this clock. It is no failure, and there is no time."""


@dataclass(frozen=True)
class Estimate:
    """A case's times per call in µs, without what a window costs beside its calls."""

    library_us: float
    candidate_us: float
    log_ratios: tuple[float, ...]
    """log(library / candidate) of each pair, moved to what is scored."""
    scored_by: str
    """``window`` or ``single``, as in ``Timing``."""
    note: str


def estimate(pairs: Sequence[Pair], singles: tuple[float, float] | None, overhead_us: float) -> Estimate:
    """Times per call from ``singles`` if given and slower, else from the windows.

    Raises Unmeasurable where a side's time is zero or less.
    """
    library, candidate = medians(pairs, overhead_us)
    logs = log_ratios(pairs, overhead_us)
    scored_by, note, shift = "window", "", 0.0
    if singles is not None and singles[1] > candidate:
        scored_by, shift = "single", statistics.median(logs) - math.log(singles[0] / singles[1])
        library, candidate = singles
        note = "one call alone takes longer than its share of a window"
    if min(library, candidate) <= LEAST_US:
        # A ratio of what cannot be seen would be no finding, however large it is.
        raise Unmeasurable(f"windows of {pairs[0][1].calls} calls took no longer than one without calls")
    return Estimate(library, candidate, tuple(value - shift for value in logs), scored_by, note)


def single_calls(
    times: Mapping[str, Sequence[float]], pairs: Sequence[Pair], overhead_us: float, device_kind: DeviceKind
) -> tuple[float, float] | None:
    """Least times of one call handed out alone, (library, candidate) in µs, if the candidate's stands out.

    ``times``: per side, of single calls in µs.
    """
    # The least of several: doing the work of many calls in one makes every single call slow.
    library, candidate = (max(min(times[side]), LEAST_US) for side in ("library", "candidate"))
    window_library, window_candidate = medians(pairs, overhead_us)
    excess = (candidate - window_candidate) - (library - window_library)
    least_excess = max(SINGLE_EXCESS * window_candidate, SINGLE_EXCESS_US[device_kind])
    if pairs[0][0].calls > 1 and excess > least_excess:
        return max(library, window_library), candidate
    return None


def enough(pairs: Sequence[Pair], overhead_us: float, noise: float, late: bool) -> bool:
    """Whether timing a case may end.

    ``noise``: half-width of the null test's noise of a ratio, which the interval includes. ``late``: its time is over.
    """
    if len(pairs) >= MAX_PAIRS:
        return True
    if len(pairs) % 2 or len(pairs) < 2:
        return False
    if late or len(pairs) < MIN_PAIRS:
        return late
    logs = log_ratios(pairs, overhead_us)
    distance = abs(statistics.median(logs))
    target = max(TARGET_HALF_WIDTH, TARGET_NOISE_SHARE * math.log1p(noise), TARGET_DISTANCE_SHARE * distance)
    return half_width(logs) < target


def is_followed(count: int) -> bool:
    """Whether another pair follows after so many, unless the case is late."""
    return count < MIN_PAIRS or (count % 2 == 1 and count < MAX_PAIRS)


def is_slow(pairs: Sequence[Pair]) -> bool:
    """Whether the candidate's windows take more than SLOW times the library's."""
    return statistics.median(b.done_us / a.done_us for a, b in pairs) > SLOW


def medians(pairs: Sequence[Pair], overhead_us: float) -> tuple[float, float]:
    """Median time of a call in windows, (library, candidate) in µs."""
    library = statistics.median(per_call(a, overhead_us) for a, _ in pairs)
    return library, statistics.median(per_call(b, overhead_us) for _, b in pairs)


def overhead(windows: Sequence[Window], queued: bool) -> float:
    """What windows without calls take, in µs: the least. ``queued``: on a GPU, where times far below most do not count.

    Its windows begin with the switch from the referee's context to the worker's, unless that has just happened.
    """
    usual = statistics.median(window.done_us for window in windows)
    return min(window.done_us for window in windows if not queued or window.done_us >= usual / 2)


def disagree(windows: Sequence[Window]) -> bool:
    """Whether windows of the same work differ by more than a factor of 2."""
    times = [window.done_us for window in windows]
    return max(times) > 2 * min(times)


def per_call(window: Window, overhead_us: float) -> float:
    """Device time of one call in µs, LEAST_US or more."""
    return max((window.done_us - overhead_us) / window.calls, LEAST_US)


def log_ratios(pairs: Sequence[Pair], overhead_us: float) -> list[float]:
    """log(library / candidate) of each pair of windows."""
    return [math.log(per_call(library, overhead_us) / per_call(candidate, overhead_us)) for library, candidate in pairs]
