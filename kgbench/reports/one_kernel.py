"""One kernel's result for a terminal: what is wrong, a guess why, and the speed of each bench case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgbench.core.figures import ABSENT, ratio_text
from kgbench.core.text import shortened
from kgbench.core.types import CaseResult, Result, first_failure
from kgbench.problem.model import Access, Problem, TensorArgument
from kgbench.prompts.guess import guess
from kgbench.reports.words import failure_words, last_words
from kgbench.scores.roofline import achieved, cost_of, roofline_share
from kgbench.scores.speedups import timed_cases

if TYPE_CHECKING:
    from rich.table import Table


def speed_table(result: Result, problem: Problem | None, peaks: Mapping[str, Any] | None = None) -> Table:
    """One line per bench case."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("bench case", overflow="fold")
    roof = ("of the\nroofline",) if peaks else ()
    for name in ("library\nµs", "yours\nµs", "speedup", "GB/s", "GFLOP/s", *roof):
        table.add_column(name, justify="right", no_wrap=True)
    for case in timed_cases(result):
        cost = cost_of(problem, case)
        cells = _speed_cells(case, achieved(case, cost), roofline_share(case, cost, peaks), result.interpreted)
        table.add_row(*cells[: len(table.columns)])
    return table


def _speed_cells(
    case: CaseResult, rates: Mapping[str, float] | None, share: float | None, interpreted: bool
) -> Sequence[str]:
    assert case.timing is not None
    name = f"{case.overload} {case.id.removeprefix('bench-')}".strip()
    if interpreted:
        return (name, _figure(case.timing.library_us), *[ABSENT] * 5)
    ratio, low, high = (ratio_text(value) for value in (case.timing.ratio, case.timing.low, case.timing.high))
    figures = (rates["gb_per_s"], rates["gflop_per_s"]) if rates else ()
    return (
        name,
        _figure(case.timing.library_us),
        _figure(case.timing.candidate_us),
        f"{ratio}x [{low}, {high}]" + (" *" if case.timing.against == "fallback" else ""),
        *(map(_figure, figures) if figures else (ABSENT, ABSENT)),
        ABSENT if share is None else f"{share:.0%}",
    )


def _figure(value: float) -> str:
    """Three digits, and no exponent for what a GPU does."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def failure_lines(result: Result, problem: Problem | None) -> Iterable[str]:
    """The first wrong element or the reason, a guess, and the end of the log where it says more."""
    yield from failure_words(result)
    words = guess_of(result, problem)
    if words:
        yield f"guess: {words}"
    if result.outcome.facts.log_says_more:
        yield from (f"| {shortened(line, 200)}" for line in last_words(result.log_tail))


def guess_of(result: Result, problem: Problem | None) -> str | None:
    """A guess at the error; None where nothing fits, or where the problem is not known."""
    case = first_failure(result)
    overload = next(
        (each for each in (problem.overloads if problem else ()) if case and each.name == case.overload), None
    )
    if case is None or overload is None:
        return None
    written = [each for each in overload.arguments if isinstance(each, TensorArgument) and each.access != Access.READ]
    return guess(case, result.cases, {each.name: each.access for each in written})
