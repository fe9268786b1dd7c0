"""The page of one problem as data: the prompt, and of every sample what was found out about it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kgbench.core.details.sentences import evidence_words
from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result, Timing, first_failure
from kgbench.llm.conversation import Prompt
from kgbench.problem.model import Problem
from kgbench.prompts.render import PromptOptions, prompt_for
from kgbench.reports.page.source import PageSource, shown
from kgbench.reports.words import estimate_text, failure_words, result_line, variables_words
from kgbench.scores.roofline import achieved, cost_of, roofline_share
from kgbench.scores.speedups import speedup
from kgbench.store.layout import candidate_path
from kgbench.store.replies import read_prompt

MOST_POINTS: Final = 60
"""Timing samples of one side of a case that a page holds; more are put together."""
MOST_LOG: Final = 20_000
"""Characters of a log's end."""


class Texts:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        return list(self._numbers)


def detail_of(source: PageSource, problem_id: str, systems: Texts) -> dict[str, Any]:
    """``systems``: the parts of prompts that many problems share, kept for all of them together."""
    texts = Texts()
    problem = source.problems.get(problem_id)
    counted = {(result.sample, result.round) for result in source.best_of(problem_id)}
    samples = []
    for result in source.results_of(problem_id):
        sample = _sample(source, result, problem, texts)
        sample["counts"] = (result.sample, result.round) in counted
        prompt = read_prompt(source.run.path, result.problem, result.sample, result.round)
        sample["prompt"] = _prompt(prompt, texts, systems) if prompt else None
        samples.append(sample)
    return {
        "summary": problem.summary if problem else "",
        "doc": problem.doc.strip() if problem else "",
        "changed": _has_changed(source, problem, problem_id),
        "asked": any(result.generation for result in source.results_of(problem_id)),
        "prompt": None if any(each["prompt"] for each in samples) else _would_be_told(problem, texts, systems),
        "samples": samples,
        "texts": texts.all(),
    }


def _has_changed(source: PageSource, problem: Problem | None, problem_id: str) -> bool:
    then = next((each.get("sha256") for each in source.run.info.get("problems", ()) if each["id"] == problem_id), None)
    return problem is not None and bool(then) and then != problem.sha256


def _would_be_told(problem: Problem | None, texts: Texts, systems: Texts) -> list[list[Any]] | None:
    """The prompt of `kgbench prompt ID` without what an installed torch adds."""
    return _prompt(prompt_for(problem, PromptOptions()), texts, systems) if problem else None


def _prompt(prompt: Prompt, texts: Texts, systems: Texts) -> list[list[Any]]:
    """(role, number) of the texts in turn; the first stands among the shared ones."""
    turns = [[turn.role, texts.number(shown(turn.text))] for turn in prompt.turns]
    return [["system", systems.number(shown(prompt.system))], *turns]


def _sample(source: PageSource, result: Result, problem: Problem | None, texts: Texts) -> dict[str, Any]:
    peaks = (source.run.info.get("device") or {}).get("peaks")
    log = result.log_tail[-MOST_LOG:]
    return {
        "sample": result.sample,
        "round": result.round,
        "outcome": str(result.outcome),
        "line": shown(result_line(result)),
        "why": [texts.number(shown(line)) for line in _why(result)],
        "mismatch": _mismatch(result),
        "speedup": _estimate(result),
        "code": _code(source, result, texts),
        "log": texts.number(shown(log)) if log.strip() else None,
        "cases": [_case(case, texts) for case in result.cases],
        "timed": [_timed(case, result, problem, peaks) for case in result.cases if case.timing],
        "evidence": [_seen(each, texts) for each in sorted(result.evidence, key=lambda one: one.allowed)],
        "policy": result.policy or "",
        "facts": [[name, texts.number(shown(text))] for name, text in _facts(result) if text],
        "again": shown(source.again(result)),
    }


def _why(result: Result) -> Sequence[str]:
    return () if result.outcome is Outcome.PASSED else tuple(failure_words(result))


def _estimate(result: Result) -> str:
    against = {name: speedup(result, name) for name in ("library", "fallback")}
    if result.interpreted:
        return ""
    if against["library"]:
        return estimate_text(against["library"])
    return f"{estimate_text(against['fallback'])} (fallback)" if against["fallback"] else ""


def _code(source: PageSource, result: Result, texts: Texts) -> int | None:
    path = candidate_path(source.run.path, result.problem, result.sample, result.round)
    try:
        return texts.number(shown(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return None


def _mismatch(result: Result) -> list[list[str]] | None:
    """The first wrong element, as lines of a table."""
    case = first_failure(result)
    wrong: Mismatch | None = case.mismatch if case else None
    if case is None or wrong is None:
        return None
    lines = (
        ("case", f"{case.overload} {case.id}".strip()),
        ("output", f"{wrong.output}, {wrong.dtype}, shape {list(wrong.shape)}"),
        ("at", str(list(wrong.index))),
        ("got", wrong.got),
        ("wanted", wrong.wanted),
        ("largest error accepted", wrong.limit),
        ("wrong elements", f"{100 * wrong.wrong_share:.3g} %"),
    )
    return [[name, shown(text)] for name, text in lines]


def _case(case: CaseResult, texts: Texts) -> list[Any]:
    """Name, phase, what it is, outcome, seconds, reason."""
    what = variables_words(case)
    reason = texts.number(shown(case.reason)) if case.reason else None
    name = f"{case.overload} {case.id}".strip()
    return [name, case.phase, texts.number(shown(what)), str(case.outcome), case.seconds, reason]


def _timed(case: CaseResult, result: Result, problem: Problem | None, peaks: Any) -> dict[str, Any]:
    timing = case.timing
    assert timing is not None
    cost = cost_of(problem, case)
    rates, share = achieved(case, cost), roofline_share(case, cost, peaks)
    return {
        "case": f"{case.overload} {case.id}".strip(),
        "what": shown(variables_words(case)),
        "against": timing.against,
        "library_us": _digits(timing.library_us),
        "candidate_us": _digits(timing.candidate_us),
        "roofline_us": _digits(timing.candidate_us * share) if share and not result.interpreted else None,
        "ratio": None if result.interpreted else [_digits(each) for each in (timing.ratio, timing.low, timing.high)],
        "gb_per_s": _digits(rates["gb_per_s"]) if rates else None,
        "gflop_per_s": _digits(rates["gflop_per_s"]) if rates else None,
        "share": _digits(share),
        "notes": [*["launch-bound"] * timing.launch_bound, *[shown(timing.note)] * bool(timing.note)],
        "scored_by": timing.scored_by,
        "samples": {side: _points(timing, side) for side in ("library", "candidate")},
    }


def _points(timing: Timing, side: str) -> list[float | None]:
    """µs per call of one side's windows in their order, at most ``MOST_POINTS``: neighbours by their median."""
    windows = [each for each in timing.windows if each.side == side and each.kind == "window" and each.calls > 0]
    values = [each.done_us / each.calls for each in windows]
    if len(values) > MOST_POINTS:
        ends = [round(number * len(values) / MOST_POINTS) for number in range(MOST_POINTS + 1)]
        values = [statistics.median(values[begin:end]) for begin, end in itertools.pairwise(ends)]
    return [_digits(value) for value in values]


def _digits(value: float | None) -> float | None:
    """The number with five digits; None for NaN and infinity, which JSON does not have."""
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return float(f"{value:.5g}")


def _seen(each: Any, texts: Texts) -> list[Any]:
    """Whether the evidence is allowed, in words."""
    return [each.allowed, texts.number(shown(evidence_words(each)))]


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    library = result.library
    if library:
        notes = "".join(f"; {key}: {text}" for key, text in library.notes.items())
        yield "library", f"{library.name or f'none ({library.reason})'}{notes}"
    yield "overloads", ", ".join(f"{name}: {outcome}" for name, outcome in result.overloads.items() if name)
    yield "device", f"{result.device}{', in the interpreter of Triton' if result.interpreted else ''}"
    yield "bench cases for", result.preset
    yield "same bits in two calls", {None: "", True: "yes", False: "no"}[result.deterministic]
    yield "sandbox", "; ".join(f"{name} {state}" for name, state in result.sandbox.items())
    yield "seconds", ", ".join(f"{name} {value:.3g}" for name, value in result.seconds.items())
    yield "peak memory in MB", ", ".join(f"{name} {value:.0f}" for name, value in result.memory_mb.items())
    yield "sha256 of the code", result.candidate_sha256
    yield from _written(result)


def _written(result: Result) -> Iterator[tuple[str, str]]:
    from kgbench.core.figures import dollars, duration, tokens

    made = result.generation
    if made is None:
        return
    yield "written by", made.model_id or "a model that did not say its id"
    yield "tokens", f"{tokens(made.input_tokens)} in, {tokens(made.output_tokens)} out"
    yield "time and cost", f"{duration(made.seconds)}, {dollars(made.usd)}"
    yield "checks by the agent", "" if made.checks is None else str(made.checks)
    yield "agent", made.confined
