"""From window times to a ratio with an interval. Pure functions, no torch.

The estimate is the median of paired log ratios, the interval the order statistics that hold the median with at least
95 % (the sign test's interval: no assumption about the noise, and one disturbed window moves nothing), widened by
what the null test (the library against itself) shows for work of this length on this kind of device.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

LAUNCH_BOUND_US: Final = 10.0
NULL_NOISE: Final = {
    "cuda": ((10.0, 0.03), (30.0, 0.02), (60.0, 0.006), (math.inf, 0.004)),
    "cpu": ((50.0, 0.10), (1000.0, 0.05), (math.inf, 0.03)),
}
"""Per device kind, (library time up to, in µs; half-width of the ratio's noise).

CUDA: measured on an H200 over 33 bench cases; below 30 µs the largest is a bias between two processes that stays for
their lifetime. CPU: two cores without other load.
"""


def null_noise(device_kind: str, library_us: float) -> float:
    """Half-width of the ratio that the null test shows for work of this length."""
    return next(noise for limit, noise in NULL_NOISE[device_kind] if library_us <= limit)


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
