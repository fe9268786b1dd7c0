"""Bootstrap intervals over problems and samples: how far a score could be off with other problems and samples.

Only numbers per sample come in (``intervals.py``). Each draw takes as many problems as there are, with replacement, and
for each of them as many of its samples as were asked for, with replacement too (a two-stage bootstrap; Davison and
Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). The interval is what 95 % of ``DRAWS`` draws lie
in (the percentile interval; Efron, 1979). A single problem is not drawn, only its samples.

Where the numbers of a draw come from is a seed in words, so that the same run always has the same intervals.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from kgbench.scores.samples import pass_at_k
from kgbench.scores.score import Over

Array = npt.NDArray[np.float64]
Picks = npt.NDArray[np.int64]

DRAWS: Final = 2000
"""Draws of the bootstrap of one score."""
AGAIN: Final = 500
"""How often a problem's samples are drawn. Each time that a draw has the problem it takes one of these at random."""
_INSIDE: Final = 0.95
"""Share of the draws that lie inside an interval."""


@dataclass(frozen=True)
class Sampled:
    """A problem's samples as numbers; one that was asked for and has no result has its place."""

    id: str
    numbers: Array
    """(columns, samples); NaN where a sample has no such number."""


@dataclass(frozen=True)
class Statistic:
    """What becomes of a column: the mean over samples, or the best of k, and then over problems."""

    column: int
    over: Over
    best_of: int | None = None


def draws(
    problems: Sequence[Sampled], statistics: Mapping[str, Statistic], seed: str, *, pick: Picks | None = None
) -> dict[str, Array]:
    """(DRAWS,) values of each statistic by its name; NaN in a draw that has no number of it.

    ``pick`` (DRAWS, problems) says which problems each draw takes, for comparing two groups of the same problems
    pairwise.
    """
    pick = picks(len(problems), seed) if pick is None else pick
    tables = [_of_problem(each, list(statistics.values()), f"{seed} {each.id}") for each in problems]
    again = max(len(table[0]) for table in tables)
    stacked = np.stack([np.broadcast_to(table, (len(table), again)) for table in tables], axis=1)
    which = pick * again
    if again > 1:
        which = which + _whole(_random(f"{seed} samples", pick.shape), again)
    pairs = zip(statistics.items(), stacked, strict=True)
    return {name: _over(each.over, np.take(table.reshape(-1), which)) for (name, each), table in pairs}


def picks(problems: int, seed: str) -> Picks:
    """(DRAWS, problems) which problem each draw takes; one problem alone is taken always."""
    return _whole(_random(f"{seed} problems", (DRAWS, problems)), problems)


def interval(values: Array) -> tuple[float, float] | None:
    """The ends of what 95 % of the draws lie in; None where fewer than half of them have a value."""
    known = values[~np.isnan(values)]
    if 2 * len(known) < len(values):
        return None
    low, high = np.quantile(known, [(1 - _INSIDE) / 2, (1 + _INSIDE) / 2])
    return float(low), float(high)


def _of_problem(problem: Sampled, statistics: Sequence[Statistic], seed: str) -> Array:
    """(statistics, draws) of one problem alone: its samples drawn again; one draw where it has one sample."""
    there = ~np.isnan(problem.numbers)
    times = _times(problem.numbers.shape[1], seed).T
    sums, counts = np.where(there, problem.numbers, 0.0) @ times, there @ times
    with np.errstate(invalid="ignore"):
        means = sums / counts
    samples = problem.numbers.shape[1]
    return np.stack(
        [
            _of_counts(samples, each.best_of)[np.rint(sums[each.column]).astype(np.int64)]
            if each.best_of
            else means[each.column]
            for each in statistics
        ]
    )


def _over(over: Over, numbers: Array) -> Array:
    """(draws,) from (draws, problems). A problem that has no number in a draw, NaN, is left out of it."""
    there = ~np.isnan(numbers)
    count = there.sum(axis=1)
    if over is Over.MEDIAN:
        ordered = np.sort(numbers, axis=1)  # NaN comes last
        middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
        medians: Array = np.exp(np.take_along_axis(ordered, middle, axis=1).mean(axis=1))
        return medians
    with np.errstate(invalid="ignore"):
        means: Array = np.where(there, numbers, 0.0).sum(axis=1) / count
    return means if over is Over.MEAN else np.exp(means)


def _times(samples: int, seed: str) -> Array:
    """(draws, samples) how often a draw takes each sample."""
    if samples == 1:
        return np.ones((1, 1))
    picked = _whole(_random(seed, (AGAIN, samples)), samples) + samples * np.arange(AGAIN)[:, None]
    return np.bincount(picked.reshape(-1), minlength=AGAIN * samples).reshape(AGAIN, samples).astype(np.float64)


@functools.cache
def _of_counts(count: int, k: int) -> Array:
    """(count + 1,) pass@k by how many of ``count`` samples count."""
    return np.array([pass_at_k(count, c, k) for c in range(count + 1)])


def _random(seed: str, shape: tuple[int, ...]) -> Array:
    """Uniform in [0, 1)."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")
    return np.random.Generator(np.random.PCG64(number)).random(shape)


def _whole(uniform: Array, below: int) -> Picks:
    return (uniform * below).astype(np.int64)
