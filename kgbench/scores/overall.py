"""The rows over several sources, of problems of kind compute: each problem weighs the same, or each source does.

The first (micro average) follows the source with most problems. In the second (macro average) every share is the mean
of the sources' shares, every speedup the geometric mean of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kgbench.core.kinds import Kind
from kgbench.core.types import Result
from kgbench.scores.rows import AtK, FastP, Row, fast_of, rows
from kgbench.scores.samples import Selected, by_problem, ks, latest
from kgbench.scores.score import Basis, Score, Unit
from kgbench.scores.speedups import mean_estimate
from kgbench.scores.table import COMPILED, CORRECT, OVER_ALL, REJECTED, all_scores

MICRO_AVERAGE: Final = "micro average"
MACRO_AVERAGE: Final = "macro average"


def overall(
    selected: Sequence[Selected], results: Iterable[Result], thresholds: Sequence[float], *, seed: str | None = None
) -> tuple[Row, ...]:
    """The row by problem and the one by source; none where there is only one source."""
    compute = [problem for problem in selected if problem.kind == Kind.COMPUTE]
    known = list(results)
    of_source = [row for row in rows(compute, known, thresholds) if row.problems]
    if len(of_source) < 2:
        return ()
    (by_problem,) = rows(compute, known, thresholds, by="all", seed=seed)
    table = all_scores(tuple(thresholds), ks(min(row.samples for row in of_source)))
    macro = _macro(of_source, by_problem, table)
    drawn = [score for score in table if score.name in macro.values]
    intervals = _intervals(compute, known, drawn, seed) if seed is not None else {}
    return replace(by_problem, source=MICRO_AVERAGE), replace(macro, intervals=intervals)


def _macro(rows: Sequence[Row], by_problem: Row, table: Sequence[Score]) -> Row:
    """Counts as of all problems; shares and speedups each source weighing the same."""
    values = {}
    for score in table:
        of_sources = [row.values.get(score.name) for row in rows]
        value = score.over_the_sources(of_sources, by_problem.values.get(score.name))
        if value is not None:
            values[score.name] = value
    speedups = [row.speedup for row in rows if row.speedup]
    samples = min(row.samples for row in rows)
    return replace(
        by_problem,
        source=MACRO_AVERAGE,
        correct=by_problem.problems * values[CORRECT.name],
        compiled=by_problem.problems * values[COMPILED.name],
        rejected=by_problem.problems * values[REJECTED.name],
        fast=fast_of(values, [fast.p for fast in by_problem.fast]),
        speedup=mean_estimate(speedups) if speedups and by_problem.speedup else None,
        speedup_over_all=values.get(OVER_ALL.name),
        fallback_speedup=None,
        samples=samples,
        at_k=tuple(_at_k(k, rows) for k in ks(samples) if all(k in {at.k for at in row.at_k} for row in rows)),
        values=values,
        clock={},
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
    compute: Sequence[Selected], results: Sequence[Result], table: Sequence[Score], seed: str
) -> dict[str, tuple[float, float]]:
    """Each source drawn by itself, so that none is larger in a draw than it is."""
    import numpy as np

    from kgbench.scores import bootstrap, intervals

    best = by_problem(latest(results))
    sources = dict.fromkeys(problem.source for problem in compute)
    of_sources = [Basis.of([each for each in compute if each.source == source], best) for source in sources]
    drawn = [intervals.draws(basis, table, seed) for basis in of_sources if basis.scored]
    ends = {}
    for score in table:
        if all(score.name in each for each in drawn):
            values = np.stack([each[score.name] for each in drawn])
            ratio = score.unit is Unit.RATIO
            ends[score.name] = bootstrap.interval(np.exp(np.log(values).mean(axis=0)) if ratio else values.mean(axis=0))
    return {name: end for name, end in ends.items() if end}
