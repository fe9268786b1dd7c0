"""What an author is told about its own kernel, between two rounds or by an agent's ``./check``.

It is enough to go on, and reveals nothing of a hidden call: no input, no expected value, no case's sizes, no tolerance.
What the judge found is told by the allow-list of ``public.py``, from data. Texts that the kernel can influence (its
output, the message of an exception that it raised) could carry inputs out; so output is left out, and of exceptions
only what compilers and libraries say is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from kgbench.core.figures import ratio_text
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.text import plain
from kgbench.core.types import CaseResult, Result, first_failure
from kgbench.problem.model import Access, Problem, TensorArgument
from kgbench.prompts.author import Author
from kgbench.prompts.guess import guess
from kgbench.prompts.logs import failure_log
from kgbench.prompts.public import public_words, when
from kgbench.prompts.words import timed_calls
from kgbench.scores.roofline import cost_of, roofline_share
from kgbench.scores.speedups import speedup, timed_cases

_PHASES: Final = {
    Phase.CHECK: "one of the fixed, small and awkward calls",
    Phase.OPINFO: "a call with shapes of PyTorch's own tests",
    Phase.LARGE: "a call with a size or an offset that 16 or 32 bits do not hold",
    Phase.FUZZ: "a random call",
    Phase.BENCH: "one of the timed calls",
}


def feedback_turn(problem: Problem, code: str, result: Result, *, peaks: Mapping[str, Any] | None = None) -> str:
    """The user's turn of a further round: the verdict on the last kernel, and what is asked for now."""
    if result.outcome is Outcome.PASSED:
        wanted = "It is correct: keep it so, and make it faster where it falls behind."
    elif result.outcome is Outcome.NO_CODE:
        wanted = "Answer with the kernel."
    elif not result.outcome.facts.counts:
        wanted = "Nothing is known about it. Write it without what cannot run here, if it can be done."
    else:
        wanted = "Find out why, and fix it. Correct comes first, fast second."
    words = verdict_words(problem, result, code=code, peaks=peaks)
    return f"{words}\n\n{wanted} Answer with the whole file again, in exactly one fenced ```python block.\n"


def verdict_words(problem: Problem, result: Result, *, code: str = "", peaks: Mapping[str, Any] | None = None) -> str:
    """The verdict in some lines: what is wrong and how wrong, or how fast each timed call is.

    ``code``: the kernel's text, of which a compiler may quote lines. ``peaks``: the device's, as sessions measure them.
    What a service has judged is told in the words that it gave.
    """
    if result.told:
        return result.told
    if result.outcome is Outcome.PASSED:
        return "\n".join(_speed(problem, result, peaks))
    return "\n".join(_failure(problem, result, code))


# --- not correct ---


def _failure(problem: Problem, result: Result, code: str) -> Iterator[str]:
    yield f"Verdict: {result.outcome}: {result.outcome.facts.meaning}."
    case = first_failure(result)
    if case is not None:
        yield f"Where: {_where(problem, case, result.preset)}"
    yield from _what(problem, result, case, code)
    log = failure_log(result, code)
    if log:
        yield f"\n```\n{log}\n```"
    judged, right = len(result.cases), sum(each.outcome is Outcome.PASSED for each in result.cases)
    if judged > 1:
        yield f"Calls judged up to there: {judged}, of which {right} are correct."


def _where(problem: Problem, case: CaseResult, preset: str) -> str:
    """The overload, dtype and sort of a case. A timed one is no secret and is named whole."""
    entry = next((each.signature.name for each in problem.overloads if each.name == case.overload), problem.name)
    call = timed_calls(problem, preset).get((case.overload, case.id)) if case.phase == Phase.BENCH else None
    if call:
        return f"in the timed call `{call}`"
    return f"in `{entry}`, {_PHASES.get(case.phase, 'a call')}, {case.dtype}"


def _what(problem: Problem, result: Result, case: CaseResult | None, code: str) -> Iterator[str]:
    failed: Result | CaseResult = result if case is None else case
    for number, words in enumerate(public_words(failed.detail, Author(problem, code))):
        yield f"{'How much of it' if number else 'What'}: {plain(words)}"
    moment = when(failed.where)
    if moment:
        yield f"When: {moment}"
    guessed = _guess(problem, result, case) if case is not None else None
    if guessed:
        yield f"Guess: {guessed}."


def _guess(problem: Problem, result: Result, case: CaseResult) -> str | None:
    """The guess that needs no variable of any case, since those are hidden."""
    overload = next((each for each in problem.overloads if each.name == case.overload), None)
    tensors = [each for each in (overload.arguments if overload else ()) if isinstance(each, TensorArgument)]
    access = {each.name: each.access for each in tensors if each.access != Access.READ}
    cases = [replace(each, variables={}) for each in result.cases]
    return guess(replace(case, variables={}), cases, access, hidden=True)


# --- right ---


def _speed(problem: Problem, result: Result, peaks: Mapping[str, Any] | None) -> Iterator[str]:
    yield f"Verdict: correct in all {len(result.cases)} calls."
    timed = [case for case in timed_cases(result) if case.timing is not None]
    if result.interpreted or not timed:
        reason = "it ran in Triton's interpreter" if result.interpreted else "nothing is timed here"
        yield f"Its speed is not known: {reason}."
        return
    yield "Speed of each timed call, library time / your time, above 1 where you are faster:"
    calls = timed_calls(problem, result.preset)
    for case in timed:
        call = calls.get((case.overload, case.id), problem.name)
        yield f"- `{call}`: {_timing(problem, case, peaks)}"
    for against in ("library", "fallback"):
        estimate = speedup(result, against)
        if estimate:
            yield f"Over all of them: {ratio_text(estimate.point)} times as fast as {_other(against)}."


def _timing(problem: Problem, case: CaseResult, peaks: Mapping[str, Any] | None) -> str:
    assert case.timing is not None
    timing = case.timing
    share = roofline_share(case, cost_of(problem, case), peaks)
    roof = f", {share:.0%} of what memory and arithmetic of the device allow" if share is not None else ""
    return (
        f"{ratio_text(timing.ratio)}x ({_figure(timing.candidate_us)} µs, {_other(timing.against)} "
        f"{_figure(timing.library_us)} µs){roof}"
    )


def _other(against: str) -> str:
    return "the library" if against == "library" else "a plain PyTorch expression, since the library does not run here"


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
