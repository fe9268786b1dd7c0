"""How fast one kernel is: its speedup over the library, with the clock's interval.

* It is the geometric mean of library / candidate over the timed bench cases, each clamped to ``CLAMP``. Cases whose
  library time is under 10 µs (launch-bound) are left out unless all are.
* The ends of its interval are the geometric means of the cases' ends. Half-widths are so averaged in the logarithm and
  never shrink with the number of cases: the noise of one process pair on one machine is shared by its cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result, Timing

CLAMP: Final = (1 / 1000, 100.0)

FLAG_ABOVE: Final = 10.0
"""Speedup of a bench case above which its result is marked for a second look."""


@dataclass(frozen=True)
class Estimate:
    """A speedup, library / candidate, with the ends of its 95 % interval."""

    point: float
    low: float
    high: float
    count: int
    """Cases, or for a row problems, that went into it."""
    launch_bound: bool = False
    """All cases are launch-bound, so their times are mostly the cost of a launch."""
    clamped: bool = False
    flagged: bool = False
    """A case was more than ``FLAG_ABOVE`` times as fast as the library, which asks for a second look."""


@dataclass(frozen=True)
class Faster:
    """A package that is faster than the library in one timed case: library / package, with the ends of the interval."""

    name: str
    ratio: float
    low: float
    high: float


def speedup(result: Result, against: str = "library") -> Estimate | None:
    """Speedup of one candidate over its bench cases; None when it is not correct, was not timed, or has no such side.

    ``against`` is ``library`` or ``fallback``. Whether the figure means anything (interpreter) is not judged here.
    """
    return speedup_of_correct(result, against) if result.outcome is Outcome.PASSED else None


def speedup_of_correct(result: Result, against: str = "library") -> Estimate | None:
    """As ``speedup``, over the timed cases that are correct although others may fail, as of an installed package."""
    timings = [case.timing for case in timed_cases(result) if case.timing and case.timing.against == against]
    launch_bound = bool(timings) and all(timing.launch_bound for timing in timings)
    scored = timings if launch_bound else [timing for timing in timings if not timing.launch_bound]
    if not scored:
        return None
    point, low, high = (geometric_mean(values) for values in zip(*map(_clamped, scored), strict=True))
    return Estimate(
        point,
        low,
        high,
        count=len(scored),
        launch_bound=launch_bound,
        clamped=any(not CLAMP[0] <= timing.ratio <= CLAMP[1] for timing in scored),
        flagged=any(timing.ratio > FLAG_ABOVE for timing in scored),
    )


def timed_cases(result: Result) -> list[CaseResult]:
    """Bench cases that passed and carry a usable ratio."""
    return [
        case
        for case in result.cases
        if case.phase == Phase.BENCH and case.outcome is Outcome.PASSED and case.timing and _usable(case.timing.ratio)
    ]


def case_key(overload: str, case_id: str) -> str:
    """A case among those of all overloads of its problem."""
    return f"{overload} {case_id}".strip()


def against_record(result: Result, record_us: Mapping[str, float]) -> Estimate | None:
    """Record's time / time over the cases of ``record_us``, which has the record's time in µs by case.

    Cases are left out as in ``speedup``; the ends are as wide as those of the speedup over the library. None where it
    is not correct, or where one of these cases has no time beside the library.
    """
    if not record_us or result.outcome is not Outcome.PASSED or result.interpreted:
        return None
    timed = {case_key(each.overload, each.id): each.timing for each in timed_cases(result)}
    pairs = [(us, timing) for case, us in record_us.items() if (timing := timed.get(case)) and timing.candidate_us > 0]
    if len(pairs) < len(record_us) or any(timing.against != "library" for _, timing in pairs):
        return None
    long = [pair for pair in pairs if not pair[1].launch_bound] or pairs
    points = [us / timing.candidate_us for us, timing in long]
    ends = [_clamped(timing) for _, timing in long]
    return Estimate(
        geometric_mean(points),
        geometric_mean([point * low / ratio for point, (ratio, low, _) in zip(points, ends, strict=True)]),
        geometric_mean([point * high / ratio for point, (ratio, _, high) in zip(points, ends, strict=True)]),
        count=len(long),
    )


def against_best(result: Result, faster: Mapping[str, Faster]) -> Estimate | None:
    """Speedup over the fastest of the library and the packages in ``faster``, by case; over the cases of ``speedup``.

    The half-widths of both intervals are added as independent noise.
    """
    estimate = speedup(result)
    if estimate is None:
        return None
    scored = [
        (timing, faster.get(case_key(case.overload, case.id)))
        for case in timed_cases(result)
        if (timing := case.timing) and timing.against == "library" and timing.launch_bound <= estimate.launch_bound
    ]
    point, low, high = (geometric_mean(values) for values in zip(*(_over(*each) for each in scored), strict=True))
    return Estimate(point, low, high, count=len(scored), launch_bound=estimate.launch_bound)


def _over(timing: Timing, faster: Faster | None) -> tuple[float, float, float]:
    ratio, low, high = _clamped(timing)
    if faster is None:
        return ratio, low, high
    below = math.hypot(math.log(ratio / low), math.log(faster.high / faster.ratio))
    above = math.hypot(math.log(high / ratio), math.log(faster.ratio / faster.low))
    point = ratio / faster.ratio
    return point, point * math.exp(-below), point * math.exp(above)


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    return Estimate(
        point=geometric_mean([estimate.point for estimate in estimates]),
        low=geometric_mean([estimate.low for estimate in estimates]),
        high=geometric_mean([estimate.high for estimate in estimates]),
        count=len(estimates),
        launch_bound=all(estimate.launch_bound for estimate in estimates),
        clamped=any(estimate.clamped for estimate in estimates),
        flagged=any(estimate.flagged for estimate in estimates),
    )


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def median(ratios: Sequence[float]) -> float:
    """The middle one; of two in the middle the geometric mean."""
    ordered = sorted(ratios)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low if low == high else geometric_mean([low, high])


def _clamped(timing: Timing) -> tuple[float, float, float]:
    """(ratio, low, high) inside ``CLAMP``; an end that is not a number is as wide as can be."""
    low = timing.low if math.isfinite(timing.low) else CLAMP[0]
    high = timing.high if math.isfinite(timing.high) else CLAMP[1]
    return _clamp(timing.ratio), _clamp(low), _clamp(high)


def _clamp(ratio: float) -> float:
    return min(max(ratio, CLAMP[0]), CLAMP[1])


def _usable(ratio: float) -> bool:
    return math.isfinite(ratio) and ratio > 0
