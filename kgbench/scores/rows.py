"""Scores as pure functions of stored results: one row per source. Nothing here is ever stored.

What a result is stands in ``types.py``, how fast one kernel is in ``speedups.py``, which samples of a problem count in
``samples.py``; how rows are printed in ``kgbench/reports``.

* fast_p is the share of *all selected problems* whose candidate is correct and whose interval lies above p.
  ``fast_p (point)`` takes the point estimate instead. fast_0 is the share that is correct, with or without a library.
  A problem without a library on this machine counts in fast_0 only: it stays in the denominator of every other fast_p
  and is fast at none, so that shares of one source mean the same on every machine.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kgbench.core.kinds import Kind, Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.scores.costs import Cost, cost_of, unconfined
from kgbench.scores.samples import (
    OfProblem,
    Selected,
    by_problem,
    is_submitted,
    ks,
    latest,
    library_ran,
    newest,
)
from kgbench.scores.score import Basis, Score
from kgbench.scores.speedups import Estimate, timed_cases
from kgbench.scores.table import COMPILED, CORRECT, OVER_ALL, REJECTED, all_scores, best_of, count, fast

THRESHOLDS: Final = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
"""The p for which fast_p is computed unless others are asked for."""


@dataclass(frozen=True)
class FastP:
    """Shares (0 to 1) of all problems of a row; None where speed means nothing on this device."""

    p: float
    interval: float | None
    point: float | None


@dataclass(frozen=True)
class AtK:
    """Shares of all problems of a row of which one of k samples is correct, and correct and fast."""

    k: int
    correct: float
    """pass@k."""
    fast: tuple[FastP, ...]
    """fast_p@k."""


@dataclass(frozen=True)
class Row:
    """One line of the table: the problems of a source, of kind compute or of all kinds."""

    source: str
    """Its name; the group's, where rows are by something else than source."""
    kinds: str
    """``compute`` or ``all kinds``."""
    problems: int
    """The denominator of every share in this row. Problems without a sample that counts are left out."""
    declared: int | None
    """Problems that the source had when the run was started, all kinds; None where that is not known, as for a source
    of the user's.
    """
    selected: int
    """Declared problems that the run selected and that count, all kinds."""
    own: int
    """Selected ones from the user's own folders, all kinds."""
    submitted: int
    """Problems with code to judge."""
    correct: float
    """Problems that are correct; with several samples the mean over them."""
    fast: tuple[FastP, ...]
    speedup: Estimate | None
    """Geometric mean over the correct problems that ran against the library."""
    fallback_speedup: Estimate | None
    """Geometric mean over the correct problems compared with a plain torch expression only; never part of fast_p."""
    against_library: int
    no_library: dict[str, str]
    """Why the library did not run, by problem."""
    outcomes: dict[str, int]
    """Results by outcome, in the order of ``Outcome``; harness errors included."""
    not_evaluated: int
    """Problems without any result: the run was ended before them."""
    overloads_correct: float
    """Required overloads that are correct, of problems correct and not; with several samples the mean over them."""
    overloads: int
    interpreted: int
    """Correct results that ran in Triton's interpreter."""
    launch_bound: int
    """Correct problems all of whose bench cases are launch-bound."""
    flagged: tuple[str, ...]
    clamped: tuple[str, ...]
    untimed: dict[str, int]
    """Correct problems of which some bench cases have a time and others have none, with their number."""
    samples: int
    """Samples of the problem that has the fewest; one that was asked for and has no result counts."""
    missing_samples: int
    """Samples asked for that have no result, problems without any result included."""
    at_k: tuple[AtK, ...]
    """pass@k and fast_p@k for k = 1, 2, 5, 10, … and ``samples``; empty with one sample."""
    cost: Cost | None
    """What the asking took; None where no model was asked."""
    unconfined: dict[str, int]
    """Results from agents that were not confined, by why."""
    compiled: float = 0.0
    """Problems whose kernel was imported, compiled and called; with several samples the mean over them."""
    rejected: float = 0.0
    """Problems whose kernel the policy or the sandbox rejected; with several samples the mean over them."""
    speedup_over_all: float | None = None
    """Geometric mean over all problems, where what is not correct or has no speedup counts as ``CLAMP[0]``. None where
    speed means nothing, or where problems are not of kind compute and so never timed."""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Bootstrap intervals over problems and samples by the score's name, such as ``correct`` and ``fast_1``
    (``intervals.py``); shares from 0 to 1. Empty where none were asked for."""
    values: dict[str, float] = field(default_factory=dict)
    """Every score of ``table.py`` that is known, by its name."""
    bounded: int = 0
    """Problems with a timed case whose least time is known and longer than an empty launch: the denominator of sol_50
    and sol_80."""
    clock: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The ends that the clock's noise alone leaves of a score, by its name."""

    def share_correct(self) -> float:
        return self.values.get(CORRECT.name, 0.0)

    def is_subset(self) -> bool:
        return self.declared is not None and self.selected < self.declared

    def fast_at(self, p: float) -> FastP | None:
        return next((fast for fast in self.fast if fast.p == p), None)


def rows(
    selected: Sequence[Selected],
    results: Iterable[Result],
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    by: str = "source",
    seed: str | None = None,
    declared: Mapping[str, int] | None = None,
    rooflines: Mapping[str, float] | None = None,
) -> list[Row]:
    """The table: per source a row for kind compute and, where it has others, one for all kinds. Or by one of ``BY``.

    The denominator is ``selected``; a result of a problem that was not selected is ignored. All rounds of a sample go
    in: what they cost is counted, and the best one scored. Rows have bootstrap intervals where there is a ``seed``:
    the run's id. ``declared`` are the problems of each source when the run was started: where fewer are selected the
    source's row is a subset. ``rooflines``: share of the device's measured peak by problem, where it is known.
    """
    attempts = newest(results)
    sizes = declared if declared is not None and by == "source" else {}
    asked = _Asked(tuple(thresholds), seed, sizes, rooflines or {})
    table = []
    for name, problems, found in _groups(selected, attempts, by):
        compute = [problem for problem in problems if problem.kind == Kind.COMPUTE]
        if compute:
            table.append(_row(name, "compute", compute, problems, found, asked))
        if len(compute) < len(problems):
            table.append(_row(name, "all kinds", problems, problems, found, asked))
    return table


def _groups(
    selected: Sequence[Selected], attempts: Sequence[Result], by: str
) -> Iterable[tuple[str, list[Selected], _Found]]:
    """(name, problems, results) of each group, in the run's order; categories by name, since sources share them."""
    if by == "model":
        for model in dict.fromkeys(result.model for result in attempts):
            yield model, list(selected), _Found.of([result for result in attempts if result.model == model])
        return
    found, groups = _Found.of(attempts), defaultdict[str, list[Selected]](list)
    for problem in selected:
        groups[_KEYS[by](problem)].append(problem)
    for name in sorted(groups) if by == "category" else groups:
        yield name, groups[name], found


_KEYS: Final[dict[str, Callable[[Selected], str]]] = {
    "source": lambda problem: problem.source,
    "category": lambda problem: problem.category or "category unknown",
    "problem": lambda problem: problem.id,
    "kind": lambda problem: problem.kind,
    "all": lambda problem: "all problems",
}

BY: Final = ("source", "category", "problem", "kind", "model")
"""What rows can be made by; ``all`` makes one of all problems."""


@dataclass(frozen=True)
class _Found:
    """Results by problem: of every round, and of each sample's best."""

    attempts: dict[str, list[Result]]
    best: dict[str, list[Result]]

    @classmethod
    def of(cls, attempts: Sequence[Result]) -> _Found:
        return cls(by_problem(attempts), by_problem(latest(attempts)))


@dataclass(frozen=True)
class _Asked:
    """What rows are asked to have; as for ``rows``."""

    thresholds: tuple[float, ...]
    seed: str | None
    declared: Mapping[str, int]
    rooflines: Mapping[str, float]


def _row(
    source: str,
    kinds: str,
    problems: Sequence[Selected],
    of_source: Sequence[Selected],
    found: _Found,
    asked: _Asked,
) -> Row:
    of_all = [result for problem in problems for result in found.best.get(problem.id, ())]
    results = [result for result in of_all if result.outcome.facts.counts]
    attempts = [result for problem in problems for result in found.attempts.get(problem.id, [])]
    right = [result for result in results if result.outcome is Outcome.PASSED]
    counts = Counter(result.outcome for result in of_all)
    counted = Basis.of(of_source, found.best).problems
    own = sum(problem.own for problem in counted)
    basis = Basis.of(problems, found.best, cost_of(attempts), asked.rooflines)
    scored, known = basis.scored, by_problem(results)
    samples = [known.get(problem.id, []) for problem in basis.problems]
    return Row(
        source=source,
        kinds=kinds,
        problems=len(scored),
        declared=asked.declared.get(source),
        selected=len(counted) - own,
        own=own,
        submitted=sum(any(map(is_submitted, of_problem)) for of_problem in samples),
        against_library=sum(any(map(library_ran, of_problem)) for of_problem in samples),
        no_library=_no_library(samples),
        outcomes={str(outcome): counts[outcome] for outcome in Outcome if counts[outcome]},
        not_evaluated=sum(not of_problem for of_problem in samples),
        overloads_correct=sum(map(_overloads_correct, basis.problems, scored, samples)),
        overloads=sum(len(problem.overloads) for problem in basis.problems),
        interpreted=sum(result.interpreted for result in right),
        **_scores(basis, asked),
        **_remarkable(scored),
        untimed={result.problem: missing for result in right if (missing := _untimed(result))},
        missing_samples=sum(each.asked - len(each.samples) for each in scored),
        cost=basis.cost,
        unconfined=unconfined(attempts),
    )


def _scores(basis: Basis, asked: _Asked) -> dict[str, Any]:
    """The fields of a row that come from the table of scores."""
    scored = basis.scored
    fewest = min((each.asked for each in scored), default=1)
    of_samples = ks(fewest) if scored else ()
    table = all_scores(asked.thresholds, of_samples) if scored else ()
    values = {score.name: value for score in table if (value := score.value(basis)) is not None}
    return {
        "correct": count(CORRECT, scored),
        "compiled": count(COMPILED, scored),
        "rejected": count(REJECTED, scored),
        "fast": fast_of(values, asked.thresholds),
        "speedup": basis.speedup,
        "fallback_speedup": basis.fallback_speedup,
        "speedup_over_all": values.get(OVER_ALL.name),
        "samples": fewest,
        "bounded": sum(each.bounded for each in scored),
        "at_k": tuple(_at_k(basis, k, asked.thresholds) for k in of_samples),
        "intervals": _intervals(basis, table, asked.seed) if asked.seed is not None else {},
        "values": values,
        "clock": {score.name: ends for score in table if score.clock and (ends := score.clock(basis))},
    }


def _remarkable(scored: Sequence[OfProblem]) -> dict[str, Any]:
    """Of speedups against the library: how many are launch-bound; the problems that are flagged or clamped."""
    estimates = {of_problem.id: each.library for of_problem in scored for each in of_problem.samples if each.library}
    return {
        "launch_bound": sum(estimate.launch_bound for estimate in estimates.values()),
        "flagged": tuple(problem for problem, estimate in estimates.items() if estimate.flagged),
        "clamped": tuple(problem for problem, estimate in estimates.items() if estimate.clamped),
    }


def _intervals(basis: Basis, table: Sequence[Score], seed: str) -> dict[str, tuple[float, float]]:
    # numpy takes longer to import than a table without intervals to compute
    from kgbench.scores.intervals import intervals

    return intervals(basis, table, seed)


def fast_of(values: Mapping[str, float], thresholds: Sequence[float]) -> tuple[FastP, ...]:
    """fast_p at each p, from the values of scores by name."""
    both = ((p, values.get(fast(p).name), values.get(fast(p, by_point=True).name)) for p in thresholds)
    return tuple(FastP(p, interval, point) for p, interval, point in both)


def _at_k(basis: Basis, k: int, thresholds: Sequence[float]) -> AtK:
    shares = (
        FastP(p, *(best_of(k, fast(p, by_point=by_point)).value(basis) for by_point in (False, True)))
        for p in thresholds
    )
    return AtK(k, best_of(k, CORRECT).value(basis) or 0.0, tuple(shares))


def _overloads_correct(problem: Selected, scored: OfProblem, of_problem: Sequence[Result]) -> float:
    right = sum(r.overloads.get(name) == Outcome.PASSED for r in of_problem for name in problem.overloads)
    return right / scored.asked


def _no_library(samples: Sequence[Sequence[Result]]) -> dict[str, str]:
    """Why, by problem; of one that had it beside another sample there is nothing to say."""
    without = [of_problem for of_problem in samples if not any(map(library_ran, of_problem))]
    return {r.problem: r.library.reason for of_problem in without for r in of_problem if r.library and r.library.reason}


def _untimed(result: Result) -> int:
    bench = [case for case in result.cases if case.phase == Phase.BENCH]
    timed = len(timed_cases(result))
    return len(bench) - timed if timed else 0
