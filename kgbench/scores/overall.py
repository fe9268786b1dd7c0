"""The rows over several sources, of problems of kind compute: each problem weighs the same, or each source does.

The first leans to the source with most problems. Every share of the second is the mean of the
sources' shares, every speedup the geometric mean of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kgbench.core.types import Result
from kgbench.scores import rows as scores
from kgbench.scores.rows import AtK, FastP, Row
from kgbench.scores.samples import Selected, ks, scored_problems
from kgbench.scores.speedups import geometric_mean, mean_estimate

MICRO_AVERAGE: Final = "micro average"
MACRO_AVERAGE: Final = "macro average"


def overall(
    selected: Sequence[Selected], results: Iterable[Result], thresholds: Sequence[float], *, seed: str | None = None
) -> tuple[Row, ...]:
    """The row by problem and the one by source; none where there is only one source."""
    compute = [problem for problem in selected if problem.kind == "compute"]
    known = list(results)
    of_source = scores.rows(compute, known, thresholds)
    if len(of_source) < 2:
        return ()
    (by_problem,) = scores.rows(compute, known, thresholds, by="all", seed=seed)
    intervals = _intervals(compute, known, thresholds, seed) if seed is not None else {}
    return replace(by_problem, source=MICRO_AVERAGE), replace(_alike(of_source, by_problem), intervals=intervals)


def _alike(rows: Sequence[Row], by_problem: Row) -> Row:
    """Counts as of all problems; shares and speedups each source weighing the same."""
    problems = by_problem.problems
    samples = min(row.samples for row in rows)
    speedups = [row.speedup for row in rows if row.speedup]
    over_all = [row.speedup_over_all for row in rows if row.speedup_over_all is not None]
    return replace(
        by_problem,
        source=MACRO_AVERAGE,
        correct=problems * _mean([row.share_correct() for row in rows]),
        compiled=problems * _mean([row.compiled / row.problems for row in rows]),
        rejected=problems * _mean([row.rejected / row.problems for row in rows]),
        fast=_fast([row.fast for row in rows]),
        speedup=mean_estimate(speedups) if speedups and by_problem.speedup else None,
        speedup_over_all=geometric_mean(over_all) if len(over_all) == len(rows) else None,
        fallback_speedup=None,
        samples=samples,
        at_k=tuple(_at_k(k, rows) for k in ks(samples) if all(k in {at.k for at in row.at_k} for row in rows)),
    )


def _at_k(k: int, rows: Sequence[Row]) -> AtK:
    known = [each for row in rows for each in row.at_k if each.k == k]
    return AtK(k, _mean([each.correct for each in known]), _fast([each.fast for each in known]))


def _fast(of_rows: Sequence[Sequence[FastP]]) -> tuple[FastP, ...]:
    return tuple(
        FastP(column[0].p, _mean_of_known([f.interval for f in column]), _mean_of_known([f.point for f in column]))
        for column in zip(*of_rows, strict=True)
    )


def _mean_of_known(shares: Sequence[float | None]) -> float | None:
    """None where speed means nothing in one of the sources."""
    known = [share for share in shares if share is not None]
    return _mean(known) if len(known) == len(shares) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _intervals(
    compute: Sequence[Selected], results: Sequence[Result], thresholds: Sequence[float], seed: str
) -> dict[str, tuple[float, float]]:
    """Each source drawn by itself, so that none is larger in a draw than it is."""
    import numpy as np

    from kgbench.scores import bootstrap, intervals

    drawn = []
    for source in dict.fromkeys(problem.source for problem in compute):
        problems = [problem for problem in compute if problem.source == source]
        drawn.append(intervals.draws(problems, scored_problems(problems, results), thresholds, seed))
    ends = {}
    for name in drawn[0]:
        if all(name in each for each in drawn):
            values = np.stack([each[name] for each in drawn])
            ratio = name in (bootstrap.SPEEDUP, bootstrap.OVER_ALL)
            ends[name] = bootstrap.interval(np.exp(np.log(values).mean(axis=0)) if ratio else values.mean(axis=0))
    return {name: end for name, end in ends.items() if end}
