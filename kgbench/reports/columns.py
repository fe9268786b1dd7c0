"""Columns of scores in all tables: name in data, head, value, interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kgbench.core.figures import ABSENT, dollars, percent, ratio_text
from kgbench.reports.model import Report
from kgbench.scores.per_problem import ProblemScores
from kgbench.scores.rows import Row
from kgbench.scores.score import Place, Score, Unit
from kgbench.scores.table import all_scores, scores_in

_T = TypeVar("_T")
Number = float | int | str | None
Ends = tuple[float, float] | None
TIMES: Final = "x"
"""Sign behind a ratio."""


@dataclass(frozen=True)
class Column(Generic[_T]):
    """One score: what it is called in data, how it is headed, its value, and how one number of it is written."""

    name: str
    head: str
    value: Callable[[_T], Number]
    words: Callable[[float], str] | None = None
    """How one number is written; None for a text or a count."""
    ends: Callable[[_T], Ends] | None = None
    """The interval; None where there never is one."""

    def cell(self, row: _T, sign: str = TIMES) -> str:
        """``57.1 % [41.2 %, 60.0 %]``; ``sign`` stands behind a ratio."""
        write = (lambda ratio: times(ratio, sign)) if self.words is times else self.words
        value, ends = self.value(row), self.ends(row) if self.ends else None
        if write is None or value is None or isinstance(value, str):
            return self.point(row)
        return f"{write(value)} [{write(ends[0])}, {write(ends[1])}]" if ends else write(value)

    def point(self, row: _T) -> str:
        """``57.1 %``"""
        value = self.value(row)
        if value is None:
            return ABSENT
        return str(value) if self.words is None or isinstance(value, str) else self.words(value)


def times(ratio: float, sign: str = TIMES) -> str:
    return f"{ratio_text(ratio)}{sign}"


UNIT_WORDS: Final[dict[Unit, Callable[[float], str]]] = {
    Unit.SHARE: percent,
    Unit.RATIO: times,
    Unit.USD: dollars,
}
"""How one number of a score is written."""


def score_column(score: Score, head: str) -> Column[Row]:
    """The column of a score, with the bootstrap's interval where it has one."""
    ends = (lambda row: row.intervals.get(score.name)) if score.resample is not None else None
    return Column(score.name, head, lambda row: row.values.get(score.name), UNIT_WORDS[score.unit], ends)


def most_samples(rows: Iterable[Row]) -> tuple[int, ...]:
    """The k of pass@k in tables that have one: the most samples that a row has, if there are several."""
    most = max((row.samples for row in rows), default=1)
    return (most,) if most > 1 else ()


def scores_shown(place: Place, rows: Sequence[Row]) -> list[Score]:
    """The scores of a table; of those that are optional, the ones that a row has."""
    known = {name for row in rows for name in row.values}
    return [score for score in scores_in(place, most_samples(rows)) if not score.optional or score.name in known]


def columns_in(place: Place, rows: Sequence[Row]) -> list[Column[Row]]:
    return [score_column(score, score.head_in(place)) for score in scores_shown(place, rows)]


def by_the_clock(score: Score, row: Row) -> list[str]:
    """The value and, of a score that has one, the interval that the clock's noise leaves of it."""
    value, ends = row.values.get(score.name), row.clock.get(score.name)
    if value is None:
        return [ABSENT]
    words = [f"[{ratio_text(ends[0])}, {ratio_text(ends[1])}]"] if ends else []
    return [UNIT_WORDS[score.unit](value), *words]


def columns(rows: Sequence[Row], by: str = "source") -> list[Column[Row]]:
    """Columns of md and LaTeX; a score that no row has is left out."""
    known = [each for each in columns_in(Place.TEXT, rows) if any(each.value(row) is not None for row in rows)]
    return [*_heads(by), *known]


def _heads(by: str) -> list[Column[Row]]:
    return [
        Column(by, by, lambda row: row.source),
        Column("kinds", "kinds", lambda row: row.kinds),
        Column("problems", "problems", lambda row: f"{row.problems} (subset)" if row.is_subset() else row.problems),
    ]


def all_columns(rows: Sequence[Row], by: str) -> list[Column[Row]]:
    """Columns of CSV: every score, for every p and k."""
    first, second, _ = _heads(by)
    thresholds = tuple(fast.p for fast in rows[0].fast) if rows else ()
    ks = tuple(sorted({at.k for row in rows for at in row.at_k}))
    return [
        first,
        second,
        Column("problems", "problems", lambda row: row.problems),
        Column("declared", "declared", lambda row: row.declared),
        Column("samples", "samples", lambda row: row.samples),
        Column("missing samples", "missing", lambda row: row.missing_samples),
        Column("submitted", "submitted", lambda row: row.submitted),
        *(score_column(score, score.head) for score in all_scores(thresholds, ks) if score.in_data),
    ]


def report_columns(report: Report) -> list[Column[Row]]:
    return all_columns(rows_of(report), report.by or "source")


def _ends_of_best(row: ProblemScores) -> Ends:
    return (row.best.low, row.best.high) if row.best else None


PROBLEM_COLUMNS: Final[tuple[Column[ProblemScores], ...]] = (
    Column("problem", "problem", lambda row: row.problem),
    Column("category", "category", lambda row: row.category),
    Column("kind", "kind", lambda row: row.kind),
    Column("samples", "samples", lambda row: row.samples),
    Column("correct", "correct", lambda row: row.correct),
    Column("outcomes", "outcomes", lambda row: ", ".join(f"{n} {o}" for o, n in row.outcomes.items())),
    Column("best speedup", "best", lambda row: row.best.point if row.best else None, times, _ends_of_best),
    Column("median speedup", "median", lambda row: row.median, times),
    Column("spread", "spread", lambda row: row.spread, times),
    Column("roofline share", "roofline", lambda row: row.roofline, percent),
    Column("usd per solved", "$ per solved", lambda row: row.usd_per_solved, dollars),
)
_ONLY_DATA: Final = ("category", "kind", "samples")


def problem_columns(report: Report) -> list[Column[ProblemScores]]:
    """Columns of tables with a row per problem; one that no row has is left out."""
    shown = [each for each in PROBLEM_COLUMNS if each.name not in _ONLY_DATA]
    return [each for each in shown if any(each.value(row) not in (None, "") for row in report.per_problem)]


def grid(report: Report, sign: str = TIMES) -> tuple[list[str], list[list[str]]]:
    """Heads and cells; ``sign`` stands behind each ratio."""
    if report.by == "problem":
        shown = problem_columns(report)
        return [each.head for each in shown], [[each.cell(row, sign) for each in shown] for row in report.per_problem]
    rows = rows_of(report)
    of_rows = columns(rows, report.by or "source")
    return [each.head for each in of_rows], [[each.cell(row, sign) for each in of_rows] for row in rows]


def rows_of(report: Report) -> tuple[Row, ...]:
    """The rows that were asked for; by source, those over several sources below."""
    return report.groups if report.by not in (None, "source") else (*report.rows, *report.overall)


def headline_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """Columns of a terminal's table with bootstrap intervals."""
    return columns_in(Place.TERMINAL_SAMPLES if most_samples(rows) else Place.TERMINAL, rows)
