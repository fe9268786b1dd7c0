"""From window times to a ratio with an interval. Pure functions, no torch.

The estimate is the mean of paired log ratios, the interval Student's t at 95 %, widened by what the null test (the
library against itself) shows for work of this length on this kind of device.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Final

LAUNCH_BOUND_US: Final = 10.0
_T_95: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12)
"""Two-sided 95 % quantiles of Student's t for 1 to 16 degrees of freedom; 2.0 beyond."""

NULL_NOISE: Final = {
    "cuda": ((5.0, 0.03), (10.0, 0.02), (20.0, 0.01), (60.0, 0.005), (math.inf, 0.002)),
    "cpu": ((50.0, 0.10), (1000.0, 0.05), (math.inf, 0.03)),
}
"""Per device kind, (library time up to, in µs; half-width of the ratio's noise)."""


def null_noise(device_kind: str, library_us: float) -> float:
    """Half-width of the ratio that the null test shows for work of this length."""
    return next(noise for limit, noise in NULL_NOISE[device_kind] if library_us <= limit)


def interval(log_ratios: Sequence[float], noise: float) -> tuple[float, float, float]:
    """Ratio, low and high from paired log ratios. One pair alone has no interval of its own but the noise."""
    mean = statistics.fmean(log_ratios)
    half = math.log1p(noise)
    if len(log_ratios) > 1:
        error = statistics.stdev(log_ratios) / math.sqrt(len(log_ratios))
        half = math.hypot(half, error * _quantile(len(log_ratios) - 1))
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def half_width(log_ratios: Sequence[float]) -> float:
    """Half-width of the 95 % interval of the mean log ratio, without the null test's noise; inf for fewer than two."""
    if len(log_ratios) < 2:
        return math.inf
    return statistics.stdev(log_ratios) / math.sqrt(len(log_ratios)) * _quantile(len(log_ratios) - 1)


def _quantile(freedom: int) -> float:
    return _T_95[freedom - 1] if freedom <= len(_T_95) else 2.0
