"""Bootstrap intervals over problems and samples: what a score could have been with other problems, asked once more.

Only numbers per sample come in (``intervals.py``). Each draw takes as many problems as there are, with replacement, and
for each of them as many of its samples as were asked for, with replacement too (a two-stage bootstrap; Davison and
Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). The interval is what 95 % of ``DRAWS`` draws lie
in (the percentile interval; Efron, 1979). A single problem is not drawn, only its samples.

Where the numbers of a draw come from is a seed in words, so that the same run has the same intervals for ever.
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

Array = npt.NDArray[np.float64]
Picks = npt.NDArray[np.int64]

DRAWS: Final = 2000
"""Draws of the bootstrap of one score."""
AGAIN: Final = 500
"""How often a problem's samples are drawn. Each time that a draw has the problem it takes one of these at random."""
SPEEDUP: Final = "speedup"
OVER_ALL: Final = "speedup over all"
_INSIDE: Final = 0.95
"""Share of the draws that lie inside an interval."""


@dataclass(frozen=True)
class Sampled:
    """A problem's samples as numbers; one that was asked for and has no result is a failure and has its line."""

    id: str
    shares: Array
    """(samples, names): 1 where a sample counts, else 0."""
    logs: Array
    """(samples,) logarithm of the speedup; NaN where there is none."""
    logs_over_all: Array
    """(samples,) the same, a failure's as low as can be."""


def draws(
    problems: Sequence[Sampled],
    names: Sequence[str],
    seed: str,
    *,
    at_k: Mapping[str, tuple[str, int]] | None = None,
    pick: Picks | None = None,
) -> dict[str, Array]:
    """(DRAWS,) values of each score: the shares ``names``, ``SPEEDUP`` (NaN in a draw without any), ``OVER_ALL``.

    ``at_k`` are further shares, the best of k: a name to that of a share and k. ``pick`` (DRAWS, problems) says which
    problems each draw takes, for comparing two groups of the same problems pairwise.
    """
    pick = picks(len(problems), seed) if pick is None else pick
    at_k = at_k or {}
    tables = [_of_problem(each, names, at_k, f"{seed} {each.id}") for each in problems]
    again = max(len(table[0]) for table in tables)
    stacked = np.stack([np.broadcast_to(table, (len(table), again)) for table in tables], axis=1)
    which = pick * again
    if again > 1:
        which = which + _whole(_random(f"{seed} samples", pick.shape), again)
    sums = {
        name: np.take(column.reshape(-1), which).sum(axis=1)
        for name, column in zip((*names, *at_k, "compared", "log", "log over all"), stacked, strict=True)
    }
    count = len(problems)
    with np.errstate(invalid="ignore", divide="ignore"):
        speedup = np.exp(sums["log"] / sums["compared"])
    found = {name: sums[name] / count for name in (*names, *at_k)}
    return {**found, SPEEDUP: speedup, OVER_ALL: np.exp(sums["log over all"] / count)}


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


def _of_problem(problem: Sampled, names: Sequence[str], at_k: Mapping[str, tuple[str, int]], seed: str) -> Array:
    """(columns, draws) of one problem alone: its samples drawn again; one draw where it has one sample."""
    count = len(problem.logs)
    compared = ~np.isnan(problem.logs)
    columns = (*problem.shares.T, compared, np.where(compared, problem.logs, 0.0), problem.logs_over_all)
    sums = np.stack(columns) @ _times(count, seed).T
    shares, (fast, log, over_all) = sums[: len(names)], sums[len(names) :]
    best = [
        _of_counts(count, k)[np.rint(shares[list(names).index(name)]).astype(np.int64)] for name, k in at_k.values()
    ]
    means = (*(shares / count), *best, fast > 0, log / np.maximum(fast, 1), over_all / count)
    return np.stack([np.asarray(mean, dtype=np.float64) for mean in means])


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
