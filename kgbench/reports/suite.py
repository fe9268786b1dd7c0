"""What a run with a suite found: per operator how much of the suite was judged, and how much of that is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.problem.suites import Share, Suite


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
    right = [case for case in cases if case.outcome is Outcome.PASSED]
    keys = [(case.overload, case.variables.get("call"), case.variables.get("lazy", "")) for case in right]
    return SuiteRow(
        problem=share.problem,
        sample=result.sample if result is not None else 0,
        samples=share.samples,
        used=share.used,
        refused=share.samples - share.used,
        calls=len(counts),
        correct=len(right),
        wrong=len(cases) - len(right),
        not_run=len(counts) - len(cases),
        outcome=str(result.outcome) if result is not None else _why_none(share, bool(counts)),
        count=sum(counts.values()),
        count_correct=sum(counts.get(key, 0) for key in keys),
        why_refused=dict(share.refused),
    )


def _why_none(share: Share, has_calls: bool) -> str:
    if has_calls:
        return "not run"
    return "none fits" if share.samples else "no samples"


def suite_table(suite: Suite, rows: Sequence[SuiteRow]) -> Table:
    """One line per row; 80 columns are enough."""
    traced = suite.name.startswith("trace:")
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("operator", no_wrap=True)
    of_model = ("correct of\nall counted",) if traced else ()
    for name in ("lines" if traced else "samples", "used", "refused", "calls correct", *of_model):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        counted = (f"{row.count_correct} of {row.count}",) if traced else ()
        numbers = (str(row.samples), str(row.used), str(row.refused), f"{row.correct} of {row.calls}", *counted)
        table.add_row(f"{row.problem}{f' #{row.sample}' if row.sample else ''}", *numbers, row.outcome)
    return table


def suite_lines(suite: Suite, rows: Sequence[SuiteRow]) -> Iterable[str]:
    """Sums, why something is not judged, and which operators of a trace file no problem is."""
    first = {row.problem: row for row in rows}.values()
    samples, used = sum(row.samples for row in first), sum(row.used for row in first)
    what = "lines" if suite.name.startswith("trace:") else "samples in torch"
    judged = [row for row in rows if row.calls]
    all_right = sum(row.correct == row.calls for row in judged)
    yield f"suite {suite.name}: {samples} {what}, {used} used, {samples - used} refused"
    right, calls = sum(row.correct for row in rows), sum(row.calls for row in rows)
    yield f"  every call correct: {all_right} of {len(judged)}; calls correct: {right} of {calls}"
    for row in first:
        for reason, count in row.why_refused.items():
            yield f"  {row.problem}: {count} refused: {reason}"
    if suite.missing:
        listed = ", ".join(f"{name} ({count})" for name, count in suite.missing.items())
        yield f"  not among the problems selected: {listed}"
