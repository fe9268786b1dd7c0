"""Is one run better than another? Paired by problem: both are scored on the problems that both have.

Each draw of the bootstrap takes the same problems of both runs and samples of each by themselves; the interval is that
of the difference, and much narrower than two intervals side by side, since a hard problem is hard for both. What must
be alike for the comparison to mean anything, and is not, stands in ``Difference``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from kgbench.core.kinds import Kind
from kgbench.core.types import Result
from kgbench.problem.problem_set import ProblemSet
from kgbench.reports.model import is_stale, seed_of, selected_in
from kgbench.scores import bootstrap, intervals
from kgbench.scores.samples import OfProblem, Selected, by_problem, latest, library_ran, newest
from kgbench.scores.score import Basis, Place, Score, Unit
from kgbench.scores.speedups import mean_estimate
from kgbench.scores.table import CORRECT, count, score_of, scores_in
from kgbench.store.reader import StoredRun, problem_hashes

BOTH: Final = " where both are correct"
"""End of the name of a score that is compared over the problems that both runs have correct."""
_LISTED: Final = 8
"""Most changed problems that a line names; it counts the others."""


@dataclass(frozen=True)
class Side:
    """A run as it is compared."""

    run: StoredRun
    selected: tuple[Selected, ...]
    attempts: tuple[Result, ...]

    @classmethod
    def of(cls, run: StoredRun) -> Side:
        sha256 = problem_hashes(run.info)
        fresh = [result for result in run.results if not is_stale(result, sha256.get(result.problem))]
        return cls(run, selected_in(run.info), tuple(newest(fresh)))

    @property
    def name(self) -> str:
        return f"{self.run.info.get('model')} {seed_of(self.run)}"

    @cached_property
    def best(self) -> dict[str, list[Result]]:
        """Results by problem, of each sample's best round."""
        return by_problem(latest(self.attempts))

    @property
    def problem_set(self) -> ProblemSet:
        return ProblemSet.of(self.run.info)


@dataclass(frozen=True)
class Difference:
    """A difference between two runs."""

    what: str
    first: str
    second: str
    decides: bool
    """Whether it changes what correct or fast means, so that a comparison says nothing about the kernels."""

    def __str__(self) -> str:
        return f"{self.what}: {self.first} and {self.second}" if self.first or self.second else self.what


@dataclass(frozen=True)
class Change:
    """A score of both runs over the same problems, and its change."""

    group: str
    problems: int
    score: str
    first: float | None
    second: float | None
    change: float | None
    """second - first of a share, second / first of a speedup."""
    interval: tuple[float, float] | None
    """95 %, paired bootstrap over problems and samples."""

    @property
    def is_ratio(self) -> bool:
        return self._of.unit is Unit.RATIO

    @property
    def head(self) -> str:
        """The score's name as tables have it."""
        return f"{self._of.head_in(Place.COMPARED)}{BOTH * self._of.of_correct}"

    @property
    def _of(self) -> Score:
        return score_of(self.score.removesuffix(BOTH))

    @property
    def certain(self) -> bool:
        """No change (0, or a ratio of 1) lies outside the interval."""
        nothing = 1.0 if self.is_ratio else 0.0
        return self.interval is not None and not self.interval[0] <= nothing <= self.interval[1]


@dataclass(frozen=True)
class Duel:
    """One problem: who has more correct samples; where that is alike, who is faster beyond the noise of the clock."""

    problem: str
    winner: str
    """``first``, ``second`` or ``neither``."""
    why: str


@dataclass(frozen=True)
class Comparison:
    first: str
    second: str
    problem_sets: tuple[ProblemSet, ProblemSet]
    """The problem set of each run."""
    differences: tuple[Difference, ...]
    only_first: int
    """Problems that only the first run was asked for; they are left out."""
    only_second: int
    not_counted: int
    """Problems of both runs for which one run has no result that counts; they are left out."""
    changes: tuple[Change, ...]
    duels: tuple[Duel, ...]

    def to_json(self) -> dict[str, Any]:
        changes = [{**vars(each), "certain": each.certain} for each in self.changes]
        return {
            **vars(self),
            "problem_sets": [vars(each) for each in self.problem_sets],
            "differences": [vars(each) for each in self.differences],
            "changes": changes,
            "duels": [vars(each) for each in self.duels],
        }


def compare(first: Side, second: Side) -> Comparison:
    """Compare the second run with the first. ``changes`` is empty where they have no problem in common."""
    counted = [{each.id for each in Basis.of(side.selected, side.best).problems} for side in (first, second)]
    theirs = {problem.id for problem in second.selected}
    both = [problem for problem in first.selected if problem.id in theirs]
    common = [problem for problem in both if all(problem.id in ids for ids in counted)]
    return Comparison(
        first.name,
        second.name,
        (first.problem_set, second.problem_set),
        tuple(differences(first, second)),
        only_first=len(first.selected) - len(both),
        only_second=len(second.selected) - len(both),
        not_counted=len(both) - len(common),
        changes=tuple(_changes(first, second, common)),
        duels=tuple(_duels(first, second, common)),
    )


def differences(first: Side, second: Side) -> Iterable[Difference]:
    """All differences, deciding ones first."""
    facts = [_facts(side) for side in (first, second)]
    for what, decides in _DECIDES.items():
        one, other = (each.get(what) for each in facts)
        if one != other and (not decides or (one and other)):
            yield Difference(what, one or "unknown", other or "unknown", decides)
    changed = _changed_problems(first, second)
    if changed:
        rest = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
        yield Difference(f"problem files: {', '.join(changed[:_LISTED])}{rest}", "", "", decides=True)
    libraries = [_libraries(side) for side in (first, second)]
    for source in sorted(libraries[0].keys() & libraries[1].keys()):
        if libraries[0][source] != libraries[1][source]:
            yield Difference(f"library of {source}", libraries[0][source], libraries[1][source], decides=True)


_DECIDES: Final = {
    "device": True,
    "policy": True,
    "clock": True,
    "driver": False,
    "kgbench": False,
    "torch": False,
    "triton": False,
    "sandbox": False,
    "samples": False,
    "rounds": False,
    "deadlines": False,
}
"""Possible differences, and whether each decides; a deciding one counts only where both runs state it."""


def _facts(side: Side) -> dict[str, str]:
    info = side.run.info
    device, packages = info.get("device") or {}, info.get("packages") or {}
    found = {
        "device": device.get("name"),
        "policy": " and ".join(sorted({result.policy for result in side.attempts if result.policy is not None})),
        "clock": "times nothing" if info.get("timed") is False else "times kernels",
        "driver": device.get("driver"),
        "kgbench": info.get("kgbench"),
        "torch": packages.get("torch"),
        "triton": packages.get("triton"),
        "sandbox": (device.get("sandbox") or {}).get("level"),
        "samples": info.get("samples") or 1,
        "rounds": info.get("rounds") or 1,
        "deadlines": ", ".join(f"{name} {value}" for name, value in (info.get("deadlines") or {}).items()),
    }
    return {name: str(value) for name, value in found.items() if value}


def _changed_problems(first: Side, second: Side) -> list[str]:
    one, other = (problem_hashes(side.run.info) for side in (first, second))
    return [name for name in one if name in other and one[name] != other[name]]


def _libraries(side: Side) -> dict[str, str]:
    """The library of each source, with its math mode."""
    named: dict[str, set[str]] = {}
    for result in side.attempts:
        if library_ran(result) and result.library:
            mode = result.library.notes.get("math_mode")
            named.setdefault(result.problem.partition("/")[0], set()).add(
                f"{result.library.name} ({mode})" if mode else result.library.name
            )
    return {source: ", ".join(sorted(names)) for source, names in named.items()}


def _changes(first: Side, second: Side, common: Sequence[Selected]) -> Iterable[Change]:
    """Changes per source and, if there are several, over all; speed over problems of kind compute, correctness over
    every kind.
    """
    groups = {source: [p for p in common if p.source == source] for source in dict.fromkeys(p.source for p in common)}
    if len(groups) > 1:
        groups["micro average"] = list(common)
    for name, problems in groups.items():
        for score in scores_in(Place.COMPARED):
            change = _change(name, score, _problems_of(score, problems, first, second), first, second)
            if change is not None:
                yield change


def _problems_of(score: Score, problems: Sequence[Selected], first: Side, second: Side) -> list[Selected]:
    """The problems over which a score of two runs is compared."""
    if not score.timed:
        return list(problems)
    compute = [problem for problem in problems if problem.kind == Kind.COMPUTE]
    if not score.of_correct:
        return compute
    sides = (first, second)
    return [each for each in compute if all(score.value(_basis(side, [each])) is not None for side in sides)]


def _basis(side: Side, problems: Sequence[Selected]) -> Basis:
    """The basis of scores, with as many samples as this run asked for."""
    own = {problem.id: problem for problem in side.selected}
    return replace(Basis.of([own[problem.id] for problem in problems], side.best), problems=problems)


def _change(group: str, score: Score, problems: Sequence[Selected], first: Side, second: Side) -> Change | None:
    """The change of a score; None where one of the runs does not have it."""
    if not problems:
        return None
    bases = [_basis(side, problems) for side in (first, second)]
    before, after = (score.value(basis) for basis in bases)
    if before is None or after is None:
        return None
    seed = f"{seed_of(first.run)} {seed_of(second.run)}"
    pick = bootstrap.picks(len(problems), f"{seed} {' '.join(problem.id for problem in problems)}")
    one, other = (
        intervals.draws(basis, [score], f"{seed} {number}", pick)[score.name] for number, basis in enumerate(bases)
    )
    ratio = score.unit is Unit.RATIO
    ends = bootstrap.interval(np.asarray(other / one if ratio else other - one)) if len(problems) > 1 else None
    name = f"{score.name}{BOTH * score.of_correct}"
    return Change(group, len(problems), name, before, after, after / before if ratio else after - before, ends)


def _duels(first: Side, second: Side, common: Sequence[Selected]) -> Iterable[Duel]:
    for one, other in zip(*(_basis(side, common).scored for side in (first, second)), strict=True):
        shares = count(CORRECT, [one]), count(CORRECT, [other])
        if shares[0] != shares[1]:
            words = f"correct {shares[0]:.0%} and {shares[1]:.0%} of its samples" if one.asked + other.asked > 2 else ""
            winner = "first" if shares[0] > shares[1] else "second"
            yield Duel(one.id, winner, words or f"only the {winner} is correct")
            continue
        ends = [_ends(each) for each in (one, other)]
        if ends[0] is None or ends[1] is None:
            yield Duel(one.id, "neither", "correct alike" if shares[0] else "none is correct")
            continue
        words = f"{ends[0][1]:.3g}x and {ends[1][1]:.3g}x"
        apart = ends[0][0] > ends[1][2], ends[1][0] > ends[0][2]
        yield Duel(one.id, "first" if apart[0] else "second" if apart[1] else "neither", words)


def _ends(of_problem: OfProblem) -> tuple[float, float, float] | None:
    """(low, point, high) of its correct samples together, by the clock's noise."""
    known = [each.library for each in of_problem.samples if each.library and not each.interpreted]
    if not known:
        return None
    mean = mean_estimate(known)
    return mean.low, mean.point, mean.high
