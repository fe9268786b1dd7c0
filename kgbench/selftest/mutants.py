"""Runs the standard mutants of problems and says which case caught each. No torch: other processes do the work."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.details.absence import Capability
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.problem.model import Overload, Problem
from kgbench.problem.mutants import MUTANTS, NEEDS
from kgbench.problem.registry import load_problem

CAUGHT: Final = "caught"
SURVIVED: Final = "survived"
EQUIVALENT: Final = "equivalent"
NOT_APPLICABLE: Final = "not applicable"
DECLARED_WRONGLY: Final = "declared wrongly"
BROKEN: Final = "broken"
BAD: Final = (SURVIVED, DECLARED_WRONGLY, BROKEN)
"""States of a mutant that fail the self-test."""


@dataclass(frozen=True)
class Row:
    """One mutant of one overload."""

    problem: str
    overload: str
    mutant: str
    state: str
    case: str = ""
    """The case that caught it."""
    words: str = ""
    """How it was caught, why it is equivalent, what is to be done."""


def chosen(
    problems: Iterable[str], mutants: Iterable[str] = (), share: float = 1.0, seed: str = ""
) -> list[tuple[str, str]]:
    """Pairs of problem and mutant, all or a share of them; the same seed draws the same.

    Mutants that are for another source's problems are left out, unless they are named.
    """
    named = tuple(mutants)
    pairs = [(problem, mutant) for problem in problems for mutant in named or _of_source(problem)]
    if share >= 1.0:
        return pairs
    drawn = random.Random(seed).sample(range(len(pairs)), min(len(pairs), max(1, round(share * len(pairs)))))
    return [pairs[index] for index in sorted(drawn)]


@functools.cache
def _read(path: Path, changed_ns: int) -> Problem:
    """A file's problem. It is asked for once per mutant, so it is read again only when changed."""
    return load_problem(path)


def _of_source(problem_id: str) -> list[str]:
    source = problem_id.partition("/")[0]
    return [name for name, mutant in MUTANTS.items() if mutant.source in ("", source)]


def rows(evaluate: Callable[[Job], Result], path: Path, problem_id: str, mutant: str) -> Iterator[Row]:
    """Run one mutant of one problem: a row per overload that is judged. ``evaluate`` is a session's."""
    trusted = f"mutant:{mutant}"
    problem = _read(path, path.stat().st_mtime_ns)
    result = evaluate(Job(problem, trusted, trusted=trusted))
    for overload in problem.judged:
        yield Row(problem_id, overload.name, mutant, *_state(result, overload, mutant))


def _state(result: Result, overload: Overload, mutant: str) -> tuple[str, str, str]:
    """State, case and words of one overload."""
    outcome = Outcome(result.overloads.get(overload.name, result.outcome))
    failing = next(
        (case for case in result.cases if case.overload == overload.name and case.outcome is not Outcome.PASSED), None
    )
    case, found = (failing.id, f"{failing.outcome}: {failing.reason}") if failing else ("", result.reason)
    if outcome is Outcome.SKIPPED and _lacks_device(result, overload):
        return NOT_APPLICABLE, "", found
    reason = overload.equivalent.get(mutant)
    if outcome is Outcome.PASSED:
        step = "add a case that it fails, or declare it under mutants.equivalent with the reason"
        return (SURVIVED, "", step) if reason is None else (EQUIVALENT, "", reason)
    if outcome is not Outcome.SKIPPED and not outcome.facts.catches_mutants:
        return BROKEN, case, f"{found}\n{result.log_tail}".strip()
    if reason is not None:
        found = found if outcome is Outcome.SKIPPED else f"it was caught: {found}"
        return DECLARED_WRONGLY, case, f"declared equivalent, but {found}; remove it from mutants.equivalent"
    needed = NEEDS[MUTANTS[mutant].needs]
    return (NOT_APPLICABLE, "", needed) if outcome is Outcome.SKIPPED else (CAUGHT, case, found)


def _lacks_device(result: Result, overload: Overload) -> bool:
    """Whether the device lacks what the overload needs, rather than the overload what the mutant needs."""
    detail, needs = result.detail, overload.needs
    return isinstance(detail, Capability) and needs is not None and needs.lacking(detail.had) == detail


def counts(found: Sequence[Row]) -> dict[str, int]:
    """Number of rows in each state, in the order of this list of states."""
    states = (CAUGHT, EQUIVALENT, NOT_APPLICABLE, *BAD)
    return {state: sum(row.state == state for row in found) for state in states}


def as_data(found: Sequence[Row]) -> dict[str, Any]:
    """Everything, JSON-ready."""
    return {"counts": counts(found), "rows": [vars(row) for row in found]}
