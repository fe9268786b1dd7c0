"""What became of each problem: its correct samples, best, median and spread of speed, roofline share, cost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgbench.core.errors import KgbenchError
from kgbench.core.kinds import Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.problem.cases import bench_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem
from kgbench.scores.costs import cost_of as cost_of_asking
from kgbench.scores.roofline import cost_of, roofline_share
from kgbench.scores.samples import Selected, latest
from kgbench.scores.speedups import Estimate, case_key, geometric_mean, median, speedup, timed_cases


@dataclass(frozen=True)
class ProblemScores:
    problem: str
    category: str
    kind: Kind
    samples: int
    """Asked for."""
    correct: int
    outcomes: dict[str, int]
    """Samples by outcome; ``not evaluated`` those without a result."""
    best: Estimate | None
    """Speedup of the correct sample with the highest lower end; the ends are the clock's noise, not a bootstrap's."""
    median: float | None
    """Median speedup of the correct samples."""
    spread: float | None
    """Highest speedup / lowest of the correct samples; None with fewer than two."""
    roofline: float | None
    """Share (0 to 1) of the device's measured peak that the best sample reaches."""
    usd: float | None
    """What asking about it cost, all samples and rounds; None where no model was asked or a price is unknown."""
    usd_per_solved: float | None
    """Dollars of all requests about the problem, where a sample is correct."""


def problem_scores(
    info: Mapping[str, Any], selected: Sequence[Selected], attempts: Iterable[Result]
) -> tuple[ProblemScores, ...]:
    """One of each selected problem, in their order. ``info`` is run.json: whose peaks the roofline is."""
    known = list(attempts)
    of_problem: dict[str, list[Result]] = {}
    for result in latest(known):
        of_problem.setdefault(result.problem, []).append(result)
    asked: dict[str, list[Result]] = {}
    for result in known:
        asked.setdefault(result.problem, []).append(result)
    peaks = (info.get("device") or {}).get("peaks")
    return tuple(
        _scores(problem, of_problem.get(problem.id, []), asked.get(problem.id, []), peaks) for problem in selected
    )


def roofline_of(result: Result, problem: Problem | None, peaks: Mapping[str, Any] | None) -> float | None:
    """Geometric mean over the bench cases of the share of the measured peak; None where one is not known."""
    if result.interpreted or result.outcome is not Outcome.PASSED:
        return None
    shares = [roofline_share(case, cost_of(problem, case), peaks) for case in timed_cases(result)]
    known = [share for share in shares if share]
    return geometric_mean(known) if known and len(known) == len(shares) else None


def problem_file(result: Result) -> Problem | None:
    """The problem that was judged: None where it is the user's own, or where its file has lost a timed call since."""
    path = Registry().paths.get(result.problem)
    if path is None:
        return None
    try:
        problem = load_problem(path)
    except KgbenchError:
        return None
    return problem if problem.sha256 == result.problem_sha256 or _has_timed_calls(problem, result) else None


def _has_timed_calls(problem: Problem, result: Result) -> bool:
    """Whether each timed call of a result is one of the problem's today: a changed description does not matter."""
    today = {
        case_key(case.overload, case.id): case.variables
        for overload in problem.overloads
        for preset in overload.bench
        for case in bench_cases(overload, preset)
    }
    return all(
        _as_stored(today.get(case_key(case.overload, case.id))) == _as_stored(case.variables)
        for case in timed_cases(result)
    )


def _as_stored(variables: Mapping[str, Any] | None) -> str:
    return json.dumps(variables, sort_keys=True, default=str)


def _scores(
    problem: Selected, samples: Sequence[Result], attempts: Sequence[Result], peaks: Mapping[str, Any] | None
) -> ProblemScores:
    right = [result for result in samples if result.outcome is Outcome.PASSED]
    timed = [(estimate, result) for result in right if not result.interpreted and (estimate := speedup(result))]
    best, winner = max(timed, key=lambda each: each[0].low, default=(None, None))
    points = [estimate.point for estimate, _ in timed]
    asked = max(problem.samples, len(samples))
    outcomes = {str(o): n for o in Outcome if (n := sum(result.outcome is o for result in samples))}
    missing = {"not evaluated": asked - len(samples)} if len(samples) < asked else {}
    cost = cost_of_asking(attempts)
    usd = cost.usd if cost else None
    return ProblemScores(
        problem=problem.id,
        category=problem.category,
        kind=problem.kind,
        samples=asked,
        correct=len(right),
        outcomes=outcomes | missing,
        best=best,
        median=median(points) if points else None,
        spread=max(points) / min(points) if len(points) > 1 else None,
        roofline=roofline_of(winner, problem_file(winner), peaks) if winner and peaks else None,
        usd=usd,
        usd_per_solved=usd if right else None,
    )
