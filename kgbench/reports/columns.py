"""The columns that scores have wherever they stand in a table: name in data, head, value, interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kgbench.core.figures import ABSENT, dollars, percent, ratio_text
from kgbench.reports.model import Report
from kgbench.scores.per_problem import ProblemScores, roofline_by
from kgbench.scores.rows import Row

_T = TypeVar("_T")
Number = float | int | str | None
Ends = tuple[float, float] | None
ByRow = Mapping[tuple[str, str], float]
"""A number by name and kinds of a row."""


@dataclass(frozen=True)
class Column(Generic[_T]):
    """One score: what it is called in data, how it is headed, its value, and how one number of it is written."""

    name: str
    head: str
    value: Callable[[_T], Number]
    words: Callable[[float], str] | None = None
    """None where it is a text or a count."""
    ends: Callable[[_T], Ends] | None = None
    """The interval; None where there never is one."""

    def cell(self, row: _T) -> str:
        """``57.1 % [41.2 %, 60.0 %]``"""
        value = self.value(row)
        if value is None:
            return ABSENT
        if self.words is None or isinstance(value, str):
            return str(value)
        ends = self.ends(row) if self.ends else None
        return f"{self.words(value)} [{self.words(ends[0])}, {self.words(ends[1])}]" if ends else self.words(value)


def times(ratio: float) -> str:
    return f"{ratio_text(ratio)}x"


def _by_row(name: str, head: str, value: Callable[[Row], Number], words: Callable[[float], str]) -> Column[Row]:
    """A column whose interval is the bootstrap's of the same name."""
    return Column(name, head, value, words, lambda row: row.intervals.get(name))


def usd_per_solved(row: Row) -> float | None:
    return row.cost.usd / row.cost.solved if row.cost and row.cost.usd is not None and row.cost.solved else None


_CORRECT: Final = _by_row("correct", "correct", Row.share_correct, percent)
_MEAN: Final = _by_row("speedup", "speedup", lambda row: row.speedup.point if row.speedup else None, times)
_OVER_ALL: Final = _by_row("speedup over all", "over all", lambda row: row.speedup_over_all, times)
_COMPILED: Final = _by_row("compiled", "compiled", lambda row: row.compiled / row.problems, percent)
_REJECTED: Final = _by_row("rejected", "rejected", lambda row: row.rejected / row.problems, percent)


def _fast(p: float, *, by_point: bool = False) -> Column[Row]:
    name = f"fast_{p:g}{' (point)' if by_point else ''}"

    def value(row: Row) -> float | None:
        fast = row.fast_at(p)
        return (fast.point if by_point else fast.interval) if fast else None

    return _by_row(name, name, value, percent)


def _at_k(name: str, k: int) -> Column[Row]:
    def value(row: Row) -> float | None:
        found = next((each for each in row.at_k if each.k == k), None)
        if found is None or name == "pass":
            return found.correct if found else None
        return next((fast.interval for fast in found.fast if fast.p == 1.0), None)

    return _by_row(f"{name}@{k}", f"{name}@{k}", value, percent)


def columns(rows: Sequence[Row], by: str = "source", roofline: ByRow | None = None) -> list[Column[Row]]:
    """Of md and LaTeX; a score that no row has is left out."""
    most = max((row.samples for row in rows), default=1)
    asked = [_at_k("pass", most), _at_k("fast_1", most)] if most > 1 else []
    cost = [Column[Row]("usd per solved", "$ per solved", usd_per_solved, dollars)]
    scores = [
        _CORRECT,
        _fast(1.0),
        _fast(1.0, by_point=True),
        _MEAN,
        _OVER_ALL,
        _COMPILED,
        _REJECTED,
        *asked,
        _roofline(roofline),
        *cost,
    ]
    return [*_heads(by), *(each for each in scores if any(each.value(row) is not None for row in rows))]


def _heads(by: str) -> list[Column[Row]]:
    return [
        Column(by, by, lambda row: row.source),
        Column("kinds", "kinds", lambda row: row.kinds),
        Column("problems", "problems", lambda row: f"{row.problems} (subset)" if row.is_subset() else row.problems),
    ]


def _roofline(shares: ByRow | None) -> Column[Row]:
    return Column("roofline share", "roofline", lambda row: (shares or {}).get((row.source, row.kinds)), percent)


def all_columns(rows: Sequence[Row], by: str, roofline: ByRow | None = None) -> list[Column[Row]]:
    """Of CSV: every score, for every p and k."""
    first, second, _ = _heads(by)
    thresholds = [fast.p for fast in rows[0].fast] if rows else []
    ks = sorted({at.k for row in rows for at in row.at_k})
    return [
        first,
        second,
        Column("problems", "problems", lambda row: row.problems),
        Column("declared", "declared", lambda row: row.declared),
        Column("samples", "samples", lambda row: row.samples),
        Column("missing samples", "missing", lambda row: row.missing_samples),
        Column("submitted", "submitted", lambda row: row.submitted),
        *(_CORRECT, _COMPILED, _REJECTED),
        *(_fast(p, by_point=by_point) for p in thresholds for by_point in (False, True)),
        *(_MEAN, _OVER_ALL),
        Column("speedup clock low", "", lambda row: row.speedup.low if row.speedup else None),
        Column("speedup clock high", "", lambda row: row.speedup.high if row.speedup else None),
        *(_at_k(name, k) for name in ("pass", "fast_1") for k in ks),
        _roofline(roofline),
        Column("usd", "$", lambda row: row.cost.usd if row.cost else None),
        Column("usd per solved", "$ per solved", usd_per_solved),
    ]


def report_columns(report: Report) -> list[Column[Row]]:
    by = report.by or "source"
    return all_columns(rows_of(report), by, roofline_by(by, report.per_problem))


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


def grid(report: Report) -> tuple[list[str], list[list[str]]]:
    if report.by == "problem":
        shown = [each for each in PROBLEM_COLUMNS if each.name not in _ONLY_DATA]
        shown = [each for each in shown if any(each.value(row) not in (None, "") for row in report.per_problem)]
        return [each.head for each in shown], [[each.cell(row) for each in shown] for row in report.per_problem]
    rows = rows_of(report)
    of_rows = columns(rows, report.by or "source", roofline_by(report.by or "source", report.per_problem))
    return [each.head for each in of_rows], [[each.cell(row) for each in of_rows] for row in rows]


def rows_of(report: Report) -> tuple[Row, ...]:
    """Those asked for; by source the ones over several sources below them."""
    return report.groups if report.by not in (None, "source") else (*report.rows, *report.overall)


def headline_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    most = max((row.samples for row in rows), default=1)
    best = [_at_k("pass", most)] if most > 1 else [_COMPILED]
    return [_CORRECT, _fast(1.0), _MEAN, _OVER_ALL, *best, _REJECTED]
