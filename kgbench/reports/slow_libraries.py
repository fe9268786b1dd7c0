"""Libraries that kernels beat so clearly that the speedup says more about the library, and why, where that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kgbench.baselines.slow import why_slow
from kgbench.core.types import Result
from kgbench.scores.speedups import Estimate, speedup

SLOW: Final = 5.0
"""Speedup from which a library counts as slow: what it ran took many times as long as the work needs."""


@dataclass(frozen=True)
class Slow:
    problem: str
    speedup: Estimate
    why: str
    """Empty where it is not known."""


def slow_libraries(results: Iterable[Result]) -> list[Slow]:
    """The largest speedup first; of several samples of a problem the fastest."""
    best: dict[str, Estimate] = {}
    for result in results:
        estimate = None if result.interpreted else speedup(result)
        if estimate is None or estimate.low < SLOW:
            continue
        if result.problem not in best or estimate.point > best[result.problem].point:
            best[result.problem] = estimate
    found = sorted(best.items(), key=lambda each: (-each[1].point, each[0]))
    return [Slow(problem, estimate, why_slow().get(problem, "")) for problem, estimate in found]
