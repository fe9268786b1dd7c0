"""What a run with a suite found: per operator how much of the suite was judged, and how much of that is correct."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from kgbench.core.figures import ABSENT
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.problem.suites import TIMED_CALLS, TIMED_OVERHEAD_CALLS, Share, Suite, SuiteCall
from kgbench.reports.generated import bare_table
from kgbench.scores.speedups import geometric_mean


@dataclass(frozen=True)
class SuiteRow:
    """One candidate, or one operator without any call."""

    problem: str
    sample: int
    samples: int
    used: int
    refused: int
    calls: int
    """Distinct ones, over all overloads."""
    correct: int
    wrong: int
    not_run: int
    """Calls after one that ended the candidate."""
    outcome: str
    count: int
    """How often the suite has the calls, all together."""
    count_correct: int
    why_refused: dict[str, int] = field(default_factory=dict)
    timed: int = 0
    """Calls that have a time."""
    plain: float | None = None
    """Geometric mean of library time / candidate time over the timed calls whose work is longer than their launch."""
    weighted: float | None = None
    """Library's time / candidate's time of these calls, each as often as models make it."""
    overhead: float | None = None
    """Geometric mean of the same over the timed calls that their launch dominates."""


def suite_rows(suite: Suite, results: Sequence[Result]) -> tuple[SuiteRow, ...]:
    """In the suite's order; an operator without a result has one, too."""
    rows = []
    for share in suite.shares:
        own = [result for result in results if result.problem == share.problem]
        rows += [_row(share, result) for result in own] or [_row(share, None)]
    return tuple(rows)


def _row(share: Share, result: Result | None) -> SuiteRow:
    cases = result.cases if result is not None else ()
    calls = [(name, call) for name, of_overload in share.calls.items() for call in of_overload]
    counts: dict[tuple[Any, ...], int] = {(name, call.call, call.lazy): call.count for name, call in calls}
    judged: dict[tuple[Any, ...], bool] = {}
    for case in cases:
        # One call may be checked and timed as well.
        judged[_key(case)] = case.outcome is Outcome.PASSED and judged.get(_key(case), True)
    keys = [key for key, is_correct in judged.items() if is_correct]
    return SuiteRow(
        problem=share.problem,
        sample=result.sample if result is not None else 0,
        samples=share.samples,
        used=share.used,
        refused=share.samples - share.used,
        calls=len(counts),
        correct=len(keys),
        wrong=len(judged) - len(keys),
        not_run=len(counts) - len(judged),
        outcome=str(result.outcome) if result is not None else _why_none(share, bool(counts)),
        count=sum(counts.values()),
        count_correct=sum(counts.get(key, 0) for key in keys),
        why_refused=dict(share.refused),
        **_speed(calls, result),
    )


def _key(case: CaseResult) -> tuple[Any, ...]:
    return case.overload, case.variables.get("call"), case.variables.get("lazy", "")


def _speed(calls: Sequence[tuple[str, SuiteCall]], result: Result | None) -> dict[str, Any]:
    """What the times of one candidate's calls say; nothing where they mean nothing."""
    if result is None or result.interpreted or result.outcome is not Outcome.PASSED:
        return {}
    known = {(name, call.call, call.lazy): call for name, call in calls}
    timed = [(known.get(_key(case)), case.timing) for case in result.cases if case.timing is not None]
    work = [(call, timing) for call, timing in timed if call is not None and not call.overhead]
    library_us = sum(call.count * timing.library_us for call, timing in work)
    candidate_us = sum(call.count * timing.library_us / timing.ratio for call, timing in work)
    launched = [timing.ratio for call, timing in timed if call is not None and call.overhead]
    return {
        "timed": len(timed),
        "plain": geometric_mean([timing.ratio for _, timing in work]) if work else None,
        "weighted": library_us / candidate_us if candidate_us else None,
        "overhead": geometric_mean(launched) if launched else None,
    }


def _why_none(share: Share, has_calls: bool) -> str:
    if has_calls:
        return "not run"
    return "none fits" if share.samples else "no samples"


def suite_table(suite: Suite, rows: Sequence[SuiteRow]) -> Table:
    """One line per row; 80 columns are enough."""
    traced = suite.name.startswith("trace:") or suite.is_timed
    of_model = ("of all\ncounted",) if traced else ()
    of_lines = ("lines", "not\nused") if suite.is_timed else ("lines" if traced else "samples", "used", "refused")
    times = ("speed-\nup", "by\ncount", "launch-\nbound") if suite.is_timed else ()
    correct = "calls\ncorrect" if suite.is_timed else "calls correct"
    table = bare_table("operator", *of_lines, correct, *of_model, *times)
    table.add_column("", no_wrap=True)
    for row in rows:
        counted = (f"{row.count_correct} of {row.count}",) if traced else ()
        used = () if suite.is_timed else (str(row.used),)
        numbers = (str(row.samples), *used, str(row.refused), f"{row.correct} of {row.calls}", *counted)
        ratios = tuple(map(_ratio, (row.plain, row.weighted, row.overhead))) if suite.is_timed else ()
        table.add_row(f"{row.problem}{f' #{row.sample}' if row.sample else ''}", *numbers, *ratios, row.outcome)
    return table


def _ratio(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2f}x"


def suite_lines(suite: Suite, rows: Sequence[SuiteRow]) -> Iterable[str]:
    """Sums, why something is not judged, and which operators of a trace file no problem is."""
    first = {row.problem: row for row in rows}.values()
    samples, used = sum(row.samples for row in first), sum(row.used for row in first)
    what = "samples in torch" if suite.name == "opinfo" else "lines"
    judged = [row for row in rows if row.calls]
    all_correct = sum(row.correct == row.calls for row in judged)
    yield f"suite {suite.name}: {samples} {what}, {used} used, {samples - used} refused"
    right, calls = sum(row.correct for row in rows), sum(row.calls for row in rows)
    yield f"  every call correct: {all_correct} of {len(judged)}; calls correct: {right} of {calls}"
    for row in first:
        for reason, count in row.why_refused.items():
            yield f"  {row.problem}: {count} refused: {reason}"
    if suite.is_timed:
        yield from _timed_lines(rows)
    for reason, count in suite.excluded.items():
        yield f"  {count} not included in the benchmark by its data set: {reason}"
    if suite.missing:
        listed = ", ".join(f"{name} ({count})" for name, count in suite.missing.items())
        yield f"  not among the problems selected: {listed}"


def _timed_lines(rows: Sequence[SuiteRow]) -> Iterable[str]:
    """Which calls have a time, and what they say of all operators together."""
    yield (
        f"  timed: of each overload the {TIMED_CALLS} calls that models make most often, and {TIMED_OVERHEAD_CALLS} "
        "whose launch takes longer than their work"
    )
    for name, values in (
        ("speedup, geometric mean over operators", [row.plain for row in rows if row.plain]),
        ("the same with each call as often as models make it", [row.weighted for row in rows if row.weighted]),
        ("calls that their launch dominates", [row.overhead for row in rows if row.overhead]),
    ):
        if values:
            yield f"  {name}: {geometric_mean(values):.2f}x ({len(values)} operators)"
