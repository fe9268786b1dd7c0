"""From window times to a ratio with an interval. Pure functions, no torch.

The estimate is the median of paired log ratios, the interval the order statistics that hold the median with at least
95 % (the sign test's interval: no assumption about the noise, and one disturbed window moves nothing), widened by what
the null test (the library against itself) shows for work of this length on this kind of device.

That noise is mostly a bias between two processes that stays for their lifetime, so more windows do not help against it.
It is taken so wide that of all problems of the benchmark, none of them faster, some one is called faster with a
probability of 5 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from kgbench.core.kinds import DeviceKind

LAUNCH_BOUND_US: Final = 10.0
"""Time of a library's call in µs below which a case is marked as bound by launches."""
DIRECT: Final = "direct"
"""Key of NULL_NOISE for calls on a GPU that cannot be queued, so that launches are in the time."""
NULL_NOISE: Final[dict[str, dict[str, float]]] = {
    "cuda": {"10": 0.135, "30": 0.06, "60": 0.017, "200": 0.015, "inf": 0.0125, DIRECT: 0.12},
    "cpu": {"50": 0.10, "1000": 0.05, "inf": 0.03},
}
"""Half-width of the noise of a ratio per device kind and range of the library's time (up to, in µs).

``direct``: calls on a GPU that cannot be queued, so that launches are in the time. CUDA: from null tests on an H200
(docs/measurements.md). CPU: two cores without other load.
"""
LEAST_RATIOS: Final = 10
"""Ratios of a null test in one range of time below which they say nothing about it."""


def time_range(device_kind: DeviceKind, library_us: float, queued: bool) -> str:
    """The key of NULL_NOISE that work of this length falls under."""
    if device_kind == DeviceKind.CUDA and not queued:
        return DIRECT
    return next(key for key in NULL_NOISE[device_kind] if key != DIRECT and library_us <= float(key))


def null_noise(
    device_kind: DeviceKind, library_us: float, queued: bool = True, measured: Mapping[str, float] | None = None
) -> tuple[float, str]:
    """Half-width of the ratio's noise for work of this length, and whose it is: ``default``, or ``measured`` here."""
    key = time_range(device_kind, library_us, queued)
    default, here = NULL_NOISE[device_kind][key], (measured or {}).get(key, 0.0)
    return (here, "measured") if here > default else (default, "default")


def family_z(family: int) -> float:
    """Standard deviations that noise exceeds to one side in one of ``family`` problems with a probability of 5 %.

    Each problem is a chance to be called faster by noise alone; 3.49 for 210 of them.
    """
    return statistics.NormalDist().inv_cdf(1 - 0.05 / family)


def measured_noise(log_ratios: Sequence[float], family: int) -> float:
    """The half-width that a null test's log ratios of one range ask for, in a benchmark of ``family`` problems.

    Only the side that would have been called faster counts: a bias that makes candidates slower calls none faster.
    ``family_z`` standard deviations, from the 75 % or the 95 % quantile, whichever says more. A single large ratio does
    not count: what disturbed it shows in its own windows.
    """
    ordered = sorted(log_ratios)
    upper, far = (ordered[math.ceil(share * len(ordered)) - 1] for share in (0.75, 0.95))
    return math.expm1(family_z(family) * max(0.0, upper / 0.6745, far / 1.6449))


def interval(log_ratios: Sequence[float], noise: float) -> tuple[float, float, float]:
    """Ratio, low and high from paired log ratios. With fewer than six pairs the interval is their whole range."""
    middle = statistics.median(log_ratios)
    low, high = _order_interval(log_ratios)
    floor = math.log1p(noise)
    return (
        math.exp(middle),
        math.exp(middle - math.hypot(middle - low, floor)),
        math.exp(middle + math.hypot(high - middle, floor)),
    )


def half_width(log_ratios: Sequence[float]) -> float:
    """Half-width of the median's 95 % interval, without the null test's noise; inf for fewer than two pairs."""
    if len(log_ratios) < 2:
        return math.inf
    low, high = _order_interval(log_ratios)
    return (high - low) / 2


def _order_interval(values: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics, alike from both ends, that holds the median with at least 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    left_out = 0
    tail = 0.0
    while 2 * (left_out + 1) < count:
        # Probability that at most ``left_out`` values lie on one side of the median.
        tail += math.comb(count, left_out) / 2**count
        if 2 * tail > 0.05:
            break
        left_out += 1
    left_out = max(left_out - 1, 0)
    return ordered[left_out], ordered[count - 1 - left_out]
