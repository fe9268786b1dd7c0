"""Verdicts for submitters: results reduced to what ``prompts/public.py`` lets an author know.

Hidden calls, their sizes and values, tolerances and references stay here. It is an allow-list: a field that is not
named below is not passed on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Library, Result, Timing, first_failure
from kgbench.problem.model import Problem
from kgbench.prompts.author import Author
from kgbench.prompts.feedback import verdict_words
from kgbench.prompts.logs import failure_log
from kgbench.prompts.public import public_words
from kgbench.scores.speedups import speedup, timed_cases

NO_LIBRARY: Final = "the library does not run on the service's machine"
_TIMES: Final = (
    "library_us", "candidate_us", "ratio", "low", "high", "scored_by", "launch_bound", "queued", "library_shared",
    "against", "noise", "noise_source",
)  # fmt: skip
_NOTES: Final = ("math_mode",)
"""Notes about the library's call that a reader of its time has to know."""
_DEVICE: Final = ("name", "kind", "memory_gb", "driver", "versions", "peaks", "sandbox")
"""What is told of a session's facts: what a reader of figures needs, nothing of the machine's folders."""


def public_result(problem: Problem, code: str, result: Result, *, peaks: Mapping[str, Any] | None = None) -> Result:
    """The result as its author may have it, itself a Result, so that a run elsewhere can keep it.

    Of the cases there are those that were timed, when it is correct, and the one that failed, when it is not; ``told``
    has the verdict in words. ``code`` is the kernel's text.
    """
    return Result(
        problem=result.problem,
        model=result.model,
        sample=result.sample,
        round=result.round,
        outcome=result.outcome,
        reason=_reason(problem, code, result),
        candidate_sha256=result.candidate_sha256,
        problem_sha256=result.problem_sha256,
        source=result.source,
        kind=result.kind,
        device=result.device,
        device_name=result.device_name,
        interpreted=result.interpreted,
        deterministic=result.deterministic,
        preset=result.preset,
        overloads=dict(result.overloads),
        cases=tuple(_cases(problem, code, result)),
        library=_library(result.library),
        sandbox=_sandbox(result.sandbox),
        seconds=dict(result.seconds),
        log_tail=failure_log(result, code),
        policy=result.policy,
        seed=result.seed,
        generation=result.generation,
        adapted=result.adapted,
        told=verdict_words(problem, result, code=code, peaks=peaks),
    )


def _reason(problem: Problem, code: str, result: Result) -> str:
    """The reason in one line; empty where nothing but the outcome may be told."""
    if result.outcome is Outcome.PASSED:
        return ""
    failed: Result | CaseResult = first_failure(result) or result
    return "; ".join(public_words(failed.detail, Author(problem, code))) or result.outcome.facts.meaning


def _cases(problem: Problem, code: str, result: Result) -> list[CaseResult]:
    if result.outcome is Outcome.PASSED:
        return [_bare(case, case.id, timing=case.timing) for case in timed_cases(result)]
    failed = first_failure(result)
    if failed is None:
        return []
    # A timed call is no secret, so it has its name.
    name = failed.id if failed.phase == Phase.BENCH else str(failed.phase)
    return [_bare(failed, name, reason=_reason(problem, code, result))]


def _bare(case: CaseResult, name: str, *, timing: Timing | None = None, reason: str = "") -> CaseResult:
    kept = None
    if timing is not None:
        kept = Timing(**{field: getattr(timing, field) for field in _TIMES})
    return CaseResult(name, case.overload, case.phase, case.dtype, {}, case.outcome, reason, timing=kept)


def _library(library: Library | None) -> Library | None:
    if library is None:
        return None
    notes = {name: text for name, text in library.notes.items() if name in _NOTES}
    return Library(library.name, NO_LIBRARY if library.reason else "", notes, library.failed)


def verdict_json(public: Result) -> dict[str, Any]:
    """As it is stored and sent: a public result, and its speedup as a number with its interval."""
    found = None if public.interpreted else speedup(public)
    return {**public.to_json(), "speedup": dataclasses.asdict(found) if found else None}


def _sandbox(states: Mapping[str, Any]) -> dict[str, Any]:
    """The level alone: the words beside it name folders of the machine."""
    return {name: states[name] for name in ("level",) if name in states}


def device_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The public facts about the judging device."""
    found = {name: facts[name] for name in _DEVICE if name in facts}
    return found | ({"sandbox": _sandbox(facts["sandbox"])} if "sandbox" in facts else {})
