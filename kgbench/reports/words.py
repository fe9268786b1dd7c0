"""One result, one case, a device and versions in words.

Text that a candidate had a hand in (reasons, logs, values) is printed without control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kgbench.core.details.place import moment
from kgbench.core.details.sentences import words_of
from kgbench.core.details.values import Mismatch
from kgbench.core.figures import ABSENT, ratio_text
from kgbench.core.outcomes import Outcome
from kgbench.core.text import number_of, plain, shortened
from kgbench.core.types import CaseResult, Result, first_failure
from kgbench.problem.problem_set import ProblemSet
from kgbench.scores.speedups import Estimate, speedup

_LOG_LINES: Final = 4
"""Lines of a log's end that stand below a failure."""


def result_line(result: Result) -> str:
    """Outcome and speed in a few words: ``passed 0.83x [0.82, 0.84]``, ``wrong value: …``."""
    if result.outcome is not Outcome.PASSED:
        return failed_line(result)
    library, fallback = speedup(result), speedup(result, "fallback")
    if result.interpreted:
        return f"passed {ABSENT}"
    if library:
        return f"passed {estimate_text(library)}{' launch-bound' if library.launch_bound else ''}"
    return f"passed {estimate_text(fallback)} against the fallback" if fallback else "passed"


def failed_line(result: Result) -> str:
    """``wrong value: …``, or the outcome alone."""
    return f"{result.outcome}: {words}" if (words := first_words(result)) else str(result.outcome)


def first_words(result: Result) -> str:
    """Why a result is not correct, in one line."""
    case = first_failure(result)
    if case and case.mismatch:
        wrong = case.mismatch
        where = f"{wrong.output}{list(wrong.index) if wrong.index else ''}"
        return plain(f"{case.id} {where}: got {wrong.got}, wanted {wrong.wanted}")
    reason = result.reason or (case.reason if case else "")
    return shortened(plain(reason.strip().partition("\n")[0]), 160)


def estimate_text(estimate: Estimate) -> str:
    """``0.83x [0.82, 0.84]``"""
    return f"{ratio_text(estimate.point)}x [{ratio_text(estimate.low)}, {ratio_text(estimate.high)}]"


def no_candidate_words(results: Iterable[Result]) -> str:
    """``no candidate: 166 problems``; empty where every problem has one. Names are in JSON and ``--by problem``."""
    problems = {result.problem for result in results if result.outcome is Outcome.NO_CANDIDATE}
    return f"{Outcome.NO_CANDIDATE}: {number_of(len(problems), 'problem')}" if problems else ""


def numbered_as(sample: int, round: int) -> str:
    """`` sample 2 round 1``, both from 0; nothing of the first round of a first sample."""
    return (f" sample {sample}" if sample or round else "") + (f" round {round}" if round else "")


def failure_words(result: Result) -> Iterable[str]:
    """The case, then what was wrong in it: the first wrong element, or else the reason."""
    case = first_failure(result)
    if case is None:
        yield from filter(None, [result.reason.strip()])
        return
    yield case_words(case)
    if case.mismatch:
        yield from filter(None, [moment(case.where).strip()])
        yield from _mismatch_words(case.mismatch)
        return
    yield from dict.fromkeys(filter(None, (_said(result, case), _said(case, case))))


def _said(failed: Result | CaseResult, case: CaseResult) -> str:
    """What happened, without the name of a case that is named already; of runs of earlier versions their sentence."""
    if failed.detail is None or failed.where is None or failed.where.case != case.id:
        return failed.reason.strip()
    return moment(failed.where) + words_of(failed.detail)


def last_words(log: str) -> Sequence[str]:
    """The end of a log; of a crash's, the top of the stack, which Python prints first."""
    lines = [line for line in log.splitlines() if line.strip() and not line.startswith("Extension modules:")]
    fatal = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), None)
    return lines[-_LOG_LINES:] if fatal is None else lines[fatal : fatal + _LOG_LINES]


def case_words(case: CaseResult) -> str:
    """``case 1-float32 (check, float32): m=3, n=5``"""
    overload = f" overload {case.overload}" if case.overload else ""
    name = f"case {case.id}{overload} ({case.phase}, {case.dtype})"
    return f"{name}: {variables}" if (variables := variables_words(case)) else name


def variables_words(case: CaseResult) -> str:
    """``m=3, n=5``"""
    # What a case leaves as it is by default says nothing about it.
    told = {name: value for name, value in case.variables.items() if name not in ("dtype", "itemsize")}
    variables = ", ".join(
        f"{name}={value}"
        for name, value in told.items()
        if value is not None and value is not False and value != "default"
    )
    return shortened(variables, 200)


def _mismatch_words(wrong: Mismatch) -> Iterable[str]:
    yield f"{wrong.output}, shape {list(wrong.shape)}, {wrong.dtype}, at {list(wrong.index)}:"
    share = f"{_share(wrong.wrong_share)} of the elements are wrong"
    yield f"got {wrong.got}, wanted {wrong.wanted}, limit {wrong.limit}; {share}"


def _share(share: float) -> str:
    return f"{100 * share:.3g} %" if share == 0 or share >= 1e-5 else f"{share:.1e}"


def device_words(facts: Mapping[str, Any]) -> str:
    """``NVIDIA H200, cuda, 151 GB`` from a session's facts."""
    memory = facts.get("memory_gb")
    parts = (facts.get("name"), facts.get("kind"), f"{memory:.0f} GB" if isinstance(memory, int | float) else None)
    return ", ".join(str(part) for part in parts if part) or "unknown (the run did not get so far)"


def versions_words(info: Mapping[str, Any]) -> str:
    facts = info.get("device") or {}
    named = {"kgbench": info.get("kgbench"), **facts.get("versions", {}), "driver": facts.get("driver")}
    return ", ".join(f"{name} {version}" for name, version in named.items() if version)


def problem_set_words(info: Mapping[str, Any]) -> str:
    return plain(str(ProblemSet.of(info)))
