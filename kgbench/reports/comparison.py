"""Is one run better than another? Paired by problem: both are scored on the problems that both have.

Each draw of the bootstrap takes the same problems of both runs and samples of each by themselves; the interval is that
of the difference, and much narrower than two intervals side by side, since a hard problem is hard for both. What must
be alike for the comparison to mean anything, and is not, stands in ``Difference``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from kgbench.core.types import Result
from kgbench.problem.problem_set import ProblemSet
from kgbench.reports.model import is_stale, seed_of, selected_in
from kgbench.scores import bootstrap, intervals
from kgbench.scores.bootstrap import OVER_ALL, SPEEDUP
from kgbench.scores.samples import OfProblem, Selected, library_ran, newest, over_all, scored_problems
from kgbench.scores.speedups import geometric_mean, mean_estimate
from kgbench.store.reader import StoredRun

RATIOS: Final = (SPEEDUP, OVER_ALL)
_LISTED: Final = 8


@dataclass(frozen=True)
class Side:
    """A run as it is compared."""

    run: StoredRun
    selected: tuple[Selected, ...]
    attempts: tuple[Result, ...]

    @classmethod
    def of(cls, run: StoredRun) -> Side:
        sha256 = {each["id"]: each.get("sha256") for each in run.info.get("problems", ())}
        fresh = [result for result in run.results if not is_stale(result, sha256.get(result.problem))]
        return cls(run, selected_in(run.info), tuple(newest(fresh)))

    @property
    def name(self) -> str:
        return f"{self.run.info.get('model')} {seed_of(self.run)}"

    @property
    def problem_set(self) -> ProblemSet:
        return ProblemSet.of(self.run.info)


@dataclass(frozen=True)
class Difference:
    """Something that is not alike in two runs."""

    what: str
    first: str
    second: str
    decides: bool
    """It changes what right or fast means, so that a comparison says nothing about the kernels."""

    def __str__(self) -> str:
        return f"{self.what}: {self.first} and {self.second}" if self.first or self.second else self.what


@dataclass(frozen=True)
class Change:
    """A score of both runs over the same problems, and what lies between them."""

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
        return self.score.startswith("speedup")

    @property
    def certain(self) -> bool:
        """No change (0, or a ratio of 1) lies outside the interval."""
        nothing = 1.0 if self.is_ratio else 0.0
        return self.interval is not None and not self.interval[0] <= nothing <= self.interval[1]


@dataclass(frozen=True)
class Duel:
    """One problem: who has more right samples; where that is alike, who is faster beyond the noise of the clock."""

    problem: str
    winner: str
    """``first``, ``second`` or ``neither``."""
    why: str


@dataclass(frozen=True)
class Comparison:
    first: str
    second: str
    problem_sets: tuple[ProblemSet, ProblemSet]
    """What each run was asked for."""
    differences: tuple[Difference, ...]
    only_first: int
    """Problems that only the first run was asked for; they are left out."""
    only_second: int
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
    """The second run beside the first. Empty ``changes`` where they have no problem in common."""
    theirs = {problem.id for problem in second.selected}
    common = [problem for problem in first.selected if problem.id in theirs]
    return Comparison(
        first.name,
        second.name,
        (first.problem_set, second.problem_set),
        tuple(differences(first, second)),
        only_first=len(first.selected) - len(common),
        only_second=len(second.selected) - len(common),
        changes=tuple(_changes(first, second, common)),
        duels=tuple(_duels(first, second, common)),
    )


def differences(first: Side, second: Side) -> Iterable[Difference]:
    """What decides first."""
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
"""What runs can differ in, and whether it decides; one that decides is only compared where both runs say it."""


def _facts(side: Side) -> dict[str, str]:
    info = side.run.info
    device, packages = info.get("device") or {}, info.get("packages") or {}
    found = {
        "device": device.get("name"),
        "policy": " and ".join(sorted({result.policy for result in side.attempts} - {""})),
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
    one, other = (
        {each["id"]: each.get("sha256") for each in side.run.info.get("problems", ())} for side in (first, second)
    )
    return [name for name in one if name in other and one[name] != other[name]]


def _libraries(side: Side) -> dict[str, str]:
    """What each source was timed beside, with its math mode."""
    named: dict[str, set[str]] = {}
    for result in side.attempts:
        if library_ran(result) and result.library:
            mode = result.library.notes.get("math_mode")
            named.setdefault(result.problem.partition("/")[0], set()).add(
                f"{result.library.name} ({mode})" if mode else result.library.name
            )
    return {source: ", ".join(sorted(names)) for source, names in named.items()}


def _changes(first: Side, second: Side, common: Sequence[Selected]) -> Iterable[Change]:
    """Per source and, where there are several, over all; speed of problems of kind compute, right of every kind."""
    groups = {source: [p for p in common if p.source == source] for source in dict.fromkeys(p.source for p in common)}
    if len(groups) > 1:
        groups["micro average"] = list(common)
    seed = f"{seed_of(first.run)} {seed_of(second.run)}"
    for name, problems in groups.items():
        compute = [problem for problem in problems if problem.kind == "compute"]
        yield from _changes_of(name, ("correct",), problems, first, second, seed)
        if compute:
            yield from _changes_of(name, ("fast_1", "fast_1 (point)", OVER_ALL), compute, first, second, seed)
            pairs = zip(_scored(first, compute), _scored(second, compute), compute, strict=True)
            both = [problem for one, other, problem in pairs if _mean(one) and _mean(other)]
            if both:
                changes = _changes_of(name, (SPEEDUP,), both, first, second, seed)
                yield from (replace(each, score="speedup where both are correct") for each in changes)


def _scored(side: Side, problems: Sequence[Selected]) -> list[OfProblem]:
    """With as many samples asked for as this run did."""
    own = {problem.id: problem for problem in side.selected}
    return scored_problems([own[problem.id] for problem in problems], side.attempts)


def _changes_of(
    group: str, names: Sequence[str], problems: Sequence[Selected], first: Side, second: Side, seed: str
) -> Iterable[Change]:
    pick = bootstrap.picks(len(problems), f"{seed} {' '.join(problem.id for problem in problems)}")
    one, other = (
        intervals.draws(problems, _scored(side, problems), (1.0,), f"{seed} {number}", pick)
        for number, side in enumerate((first, second))
    )
    for name in names:
        if name not in one or name not in other:
            continue
        drawn = other[name] / one[name] if name in RATIOS else other[name] - one[name]
        before, after = (_value(name, problems, _scored(side, problems)) for side in (first, second))
        change = None
        if before is not None and after is not None:
            change = after / before if name in RATIOS else after - before
        ends = bootstrap.interval(np.asarray(drawn)) if len(problems) > 1 else None
        yield Change(group, len(problems), name, before, after, change, ends if change is not None else None)


def _value(name: str, problems: Sequence[Selected], scored: Sequence[OfProblem]) -> float | None:
    if name == OVER_ALL:
        return over_all(problems, scored)
    if name == SPEEDUP:
        means = [mean for each in scored if (mean := _mean(each))]
        return geometric_mean(means) if means else None
    p = 0.0 if name == "correct" else 1.0
    return sum(each.share(p, by_point=name.endswith("(point)")) for each in scored) / len(scored)


def _mean(of_problem: OfProblem) -> float | None:
    """Geometric mean of its right samples' speedups."""
    points = [each.library.point for each in of_problem.samples if each.library and not each.interpreted]
    return geometric_mean(points) if points else None


def _duels(first: Side, second: Side, common: Sequence[Selected]) -> Iterable[Duel]:
    for one, other in zip(_scored(first, common), _scored(second, common), strict=True):
        shares = one.share(0), other.share(0)
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
    """(low, point, high) of its right samples together, by the clock's noise."""
    known = [each.library for each in of_problem.samples if each.library and not each.interpreted]
    if not known:
        return None
    mean = mean_estimate(known)
    return mean.low, mean.point, mean.high
