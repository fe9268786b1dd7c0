"""The tables of scores on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kgbench.core.figures import count_text, percent, ratio_text
from kgbench.reports.columns import Column, by_the_clock, columns_in, headline_columns, problem_columns, scores_shown
from kgbench.reports.generated import AfterRounds, bare_table, side_by_side
from kgbench.reports.model import Report
from kgbench.scores.costs import NOT_CONFINED
from kgbench.scores.rows import Row
from kgbench.scores.score import Place, Score


def score_table(rows: Sequence[Row]) -> Table:
    """One line per row, with the clock's intervals; what no row has (the fallback) has no column."""
    shown = scores_shown(Place.COUNTED, rows)
    gap = 0 if any(score.optional for score in shown) else 1  # 80 columns, all of them
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)
    table.add_column("source", no_wrap=True)
    for head in ("problems", "sub-\nmitted", *(score.head_in(Place.COUNTED) for score in shown)):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        cells = ("\n".join(_counted(score, row) + by_the_clock(score, row)) for score in shown)
        table.add_row(_label(row), str(row.problems), str(row.submitted), *cells)
    return table


def _counted(score: Score, row: Row) -> list[str]:
    """A share as a number of problems, of those that count."""
    return [count_text(getattr(row, score.name))] if score.counted else []


def threshold_table(rows: Sequence[Row]) -> Table:
    """fast_p over p, by interval and by point."""
    table = bare_table("fast_p at p =", *(f"{fast.p:g}" for fast in rows[0].fast))
    for row in rows:
        if not row.speedup:
            continue
        name = f"{row.source} {row.kinds}"
        table.add_row(name, *(percent(fast.interval) for fast in row.fast))
        table.add_row(f"{name} (point)", *(percent(fast.point) for fast in row.fast))
    return table


def _label(row: Row) -> str:
    lines = [f"{row.source} {row.kinds}"]
    lines += [f"subset {row.selected} of {row.declared}"] * row.is_subset()
    lines += [NOT_CONFINED] * bool(row.unconfined)
    return "\n".join(lines)


def intervals_table(rows: Sequence[Row], overall: Sequence[Row] = (), by: str = "source") -> Table:
    """Value above, interval below: six headline scores fit 80 columns. Rows over all sources are of kind compute."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("95 % over\nproblems")
    if by != "source":  # there the table above counts them
        table.add_column("count", justify="right")
    every = [*rows, *overall]
    shown = [each for each in headline_columns(every) if any(each.value(row) is not None for row in every)]
    for column in shown:
        table.add_column(column.head, justify="right", no_wrap=True)
    for row in every:
        plain = row in overall or (by != "source" and row.kinds == "compute")
        name = row.source if plain else f"{row.source} {row.kinds}"
        count = [] if by == "source" else [str(row.problems)]
        table.add_row(name, *count, *("\n".join(_lines(column, row)) for column in shown))
    return table


def ranking_columns(rows: Sequence[Row]) -> list[Column[Row]]:
    """The scores of a leaderboard that has these rows."""
    return columns_in(Place.RANKING, rows)


def ranking_cells(row: Row, shown: Sequence[Column[Row]]) -> Iterable[list[str]]:
    """For each of these scores the lines of its cell: the value, and below it the interval."""
    return (_lines(column, row) for column in shown)


def _lines(column: Column[Row], row: Row) -> list[str]:
    """The ends of a share in whole percents."""
    value = column.value(row)
    ends = column.ends(row) if column.ends else None
    if not isinstance(value, int | float) or not ends or not column.words:
        return [column.cell(row)]
    words = [f"{100 * end:.0f}" if column.words is percent else ratio_text(end) for end in ends]
    return [column.words(value), "–".join(words)]


def rounds_table(after: Sequence[AfterRounds]) -> Table:
    """Scores over rounds."""
    shown = side_by_side(after)
    table = bare_table("after rounds", *(str(each.rounds) for each in shown))
    for rows in zip(*(each.rows for each in shown), strict=True):
        for column in columns_in(Place.ROUNDS, rows):
            if any(column.value(row) is not None for row in rows):
                table.add_row(f"{rows[0].source} {rows[0].kinds} {column.head}", *map(column.point, rows))
    return table


def _problems_table(report: Report) -> Table:
    """Without the ends of intervals, so that names are whole in 80 columns."""
    shown = problem_columns(report)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for head in (column.head for column in shown):
        left = head in ("problem", "outcomes")
        table.add_column(head, justify="left" if left else "right", no_wrap=head != "outcomes")
    for row in report.per_problem:
        table.add_row(*(column.point(row) for column in shown))
    return table


def terminal_tables(report: Report) -> Iterable[Table]:
    """What was counted, then every headline score with its bootstrap interval."""
    if report.by == "problem":
        yield _problems_table(report)
        return
    if report.by in (None, "source"):
        yield score_table(report.rows)
        yield intervals_table(report.rows, report.overall)
    else:
        yield intervals_table(report.groups, by=report.by)
