"""Which scores have a bootstrap interval, and the numbers of each sample that they are computed from.

Not to be mixed up with ``Estimate.low`` and ``high``: those say how well one run's clock measured, these how far a
score could be off with other problems of the kind, asked once more. How they are drawn stands in ``bootstrap.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kgbench.scores import bootstrap
from kgbench.scores.bootstrap import OVER_ALL, SPEEDUP, Array, Sampled
from kgbench.scores.samples import OfProblem, Scored, Selected, any_interpreted, ks, over_all


def intervals(
    problems: Sequence[Selected], scored: Sequence[OfProblem], thresholds: Sequence[float], seed: str
) -> dict[str, tuple[float, float]]:
    """By the score's name; a score that has no meaning here has none, and nothing has of one sample of one problem."""
    if sum(each.asked for each in scored) < 2:
        return {}
    drawn = draws(problems, scored, thresholds, seed)
    ends = {name: bootstrap.interval(values) for name, values in drawn.items()}
    return {name: end for name, end in ends.items() if end}


def draws(
    problems: Sequence[Selected],
    scored: Sequence[OfProblem],
    thresholds: Sequence[float],
    seed: str,
    pick: bootstrap.Picks | None = None,
) -> dict[str, Array]:
    """Values of every score that has a meaning for these problems; ``pick`` as for ``bootstrap.draws``."""
    fewest = min(each.asked for each in scored)
    best = {f"pass@{k}": ("correct", k) for k in ks(fewest)}
    if 1.0 in thresholds:
        best |= {f"fast_1@{k}": ("fast_1", k) for k in ks(fewest)}
    seed = f"{seed} {' '.join(each.id for each in scored)}"
    sampled = [_sampled(each, thresholds) for each in scored]
    drawn = bootstrap.draws(sampled, names(thresholds), seed, at_k=best, pick=pick)
    if over_all(problems, scored) is None:
        del drawn[OVER_ALL]
    if any_interpreted(scored):
        return {name: values for name, values in drawn.items() if name != SPEEDUP and not name.startswith("fast_")}
    return drawn


def names(thresholds: Sequence[float]) -> tuple[str, ...]:
    """``correct``, ``compiled``, ``rejected``, ``fast_1``, ``fast_1 (point)``, … in the order of ``_shares``."""
    fast = (f"fast_{p:g}{point}" for p in thresholds for point in ("", " (point)"))
    return ("correct", "compiled", "rejected", *fast)


def _shares(each: Scored, thresholds: Sequence[float]) -> list[bool]:
    fast = (each.is_fast(p, by_point=by_point) for p in thresholds for by_point in (False, True))
    return [each.correct, each.compiled, each.rejected, *fast]


def _sampled(of_problem: OfProblem, thresholds: Sequence[float]) -> Sampled:
    shares = np.zeros((of_problem.asked, len(names(thresholds))))
    logs = np.full(of_problem.asked, np.nan)
    for line, each in enumerate(of_problem.samples):
        shares[line] = _shares(each, thresholds)
        logs[line] = math.log(each.library.point) if each.library else math.nan
    return Sampled(of_problem.id, shares, logs, np.array(of_problem.logs_over_all()))
