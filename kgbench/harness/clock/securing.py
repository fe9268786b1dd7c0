"""Work behind the mark: how much longer than the library's a candidate's outputs take to secure, and when that counts.

A worker that raises a window's mark early works on while its outputs are secured. What securing takes scatters by some
percent of a window, of the library's outputs as well, so a difference counts where noise rarely makes it: in one case
by itself, or in all timed cases of a candidate together. Then it is added to the candidate's time in full.
docs/design/0002-clock.md has what that misses and what it costs the honest.

Pure functions, no torch.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kgbench.core.types import Timing
from kgbench.harness.clock.estimate import Pair, medians

STUDENT_T: Final = (63.7, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)
"""Quantiles of 99.5 % of Student's distribution with 1, 2, … degrees of freedom."""
TOGETHER: Final = 3.0
"""Standard errors from which on the difference of all cases together counts."""
MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
"""Standard error of a median / that of a mean, of normally distributed values."""
LEAST_ERROR: Final = 0.5
"""Share of the usual standard error of a candidate's cases that one of them has at least: few windows may agree by
chance."""


@dataclass(frozen=True)
class Late:
    """When the outputs of one case's timed calls were there. Times in µs per call."""

    excess_us: float
    """Median over pairs of windows of what securing took more than for the library."""
    error_us: float
    """Its standard error if the candidate's scatters as the library's. A candidate's own scatter excuses nothing."""
    pairs: int
    candidate_us: float
    """The candidate's time without it."""

    @property
    def counts(self) -> bool:
        """Whether it is more than noise by itself."""
        quantile = STUDENT_T[min(max(self.pairs - 1, 1), len(STUDENT_T)) - 1]
        return self.excess_us > quantile * self.error_us


def late_of(pairs: Sequence[Pair], overhead_us: float) -> Late:
    """What the pairs of windows say; ``pairs`` has two or more."""
    own = [library.secured_us - library.done_us for library, _ in pairs]
    excess = statistics.median((b.secured_us - b.done_us) - least for (_, b), least in zip(pairs, own, strict=True))
    # Stored windows of the library stand in for several, and say nothing new then.
    different = len(set(own))
    spread = statistics.stdev(own) * math.sqrt(1 / len(own) + 1 / different)
    calls = pairs[0][1].calls
    return Late(excess / calls, MEDIAN_ERROR * spread / calls, different, medians(pairs, overhead_us)[1])


def count_together(lates: Sequence[Late]) -> bool:
    """Whether all cases together show that a candidate works behind the mark: the share of its time, weighted."""
    errors = [late.error_us / late.candidate_us for late in lates]
    least = LEAST_ERROR * statistics.median(errors) if errors else 0.0
    if not least > 0:
        return False
    weights = [1 / max(error, least) ** 2 for error in errors]
    share = sum(w * late.excess_us / late.candidate_us for w, late in zip(weights, lates, strict=True)) / sum(weights)
    return share > TOGETHER / math.sqrt(sum(weights))


def charged(timed: Sequence[tuple[Timing, Late]]) -> list[Timing]:
    """The timings of a candidate's cases, with what was late where that counts."""
    all_count = count_together([late for _, late in timed])
    return [_later(timing, late) if all_count or late.counts else timing for timing, late in timed]


def _later(timing: Timing, late: Late) -> Timing:
    """A timing to which the excess is added; a single call that takes even longer stays what is scored."""
    candidate_us = late.candidate_us + late.excess_us
    if late.excess_us <= 0 or candidate_us <= timing.candidate_us:
        return timing
    slower = candidate_us / timing.candidate_us
    return replace(
        timing,
        candidate_us=candidate_us,
        ratio=timing.ratio / slower,
        low=timing.low / slower,
        high=timing.high / slower,
        scored_by="secured",
        note=f"outputs were there {late.excess_us:.1f} µs per call later than the mark said",
    )
