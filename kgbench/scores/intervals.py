"""Bootstrap intervals of scores, from the numbers of each sample.

Other than ``Estimate.low`` and ``high``, which say how exactly one run's clock measured: these say how far a score
could be off with other problems and samples of the same kind. How they are drawn stands in ``bootstrap.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kgbench.scores import bootstrap
from kgbench.scores.bootstrap import Array, Sampled, Statistic
from kgbench.scores.samples import OfProblem
from kgbench.scores.score import Basis, Number, Score


def intervals(basis: Basis, scores: Iterable[Score], seed: str) -> dict[str, tuple[float, float]]:
    """By the score's name; a score that has no meaning here has none, and nothing has of one sample of one problem."""
    if sum(each.asked for each in basis.scored) < 2:
        return {}
    ends = {name: bootstrap.interval(values) for name, values in draws(basis, scores, seed).items()}
    return {name: end for name, end in ends.items() if end}


def draws(basis: Basis, scores: Iterable[Score], seed: str, pick: bootstrap.Picks | None = None) -> dict[str, Array]:
    """Values of every score that has a value and can be drawn; ``pick`` as for ``bootstrap.draws``."""
    resamples = {
        score.name: score.resample for score in scores if score.resample is not None and score.value(basis) is not None
    }
    columns = list(dict.fromkeys(each.number for each in resamples.values()))
    statistics = {
        name: Statistic(columns.index(each.number), each.over, each.best_of) for name, each in resamples.items()
    }
    seed = f"{seed} {' '.join(each.id for each in basis.scored)}"
    return bootstrap.draws([_sampled(each, columns) for each in basis.scored], statistics, seed, pick=pick)


def _sampled(of_problem: OfProblem, columns: Sequence[Number]) -> Sampled:
    missing = of_problem.asked - len(of_problem.samples)
    numbers = [
        [*map(each.of, of_problem.samples), *[each.missing] * missing]
        if each.of_problem(of_problem)
        else [None] * of_problem.asked
        for each in columns
    ]
    return Sampled(of_problem.id, np.array(numbers, dtype=np.float64))
