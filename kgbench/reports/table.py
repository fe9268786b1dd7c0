"""The score table with its bootstrap intervals: on a terminal, as Markdown, CSV and LaTeX, from one list of columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TextIO, TypeVar

from rich.box import SIMPLE_HEAD
from rich.table import Table

from kgbench.core.figures import ABSENT, dollars, percent, ratio_text
from kgbench.scores.per_problem import ProblemScores, roofline_by
from kgbench.scores.rows import Row

if TYPE_CHECKING:
    import pandas as pd

    from kgbench.reports.report import Report

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


_RIGHT: Final = _by_row("right", "right", Row.share_right, percent)
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
            return found.right if found else None
        return next((fast.interval for fast in found.fast if fast.p == 1.0), None)

    return _by_row(f"{name}@{k}", f"{name}@{k}", value, percent)


def columns(rows: Sequence[Row], by: str = "source", roofline: ByRow | None = None) -> list[Column[Row]]:
    """Of md and LaTeX; a score that no row has is left out."""
    most = max((row.samples for row in rows), default=1)
    asked = [_at_k("pass", most), _at_k("fast_1", most)] if most > 1 else []
    cost = [Column[Row]("usd per solved", "$ per solved", usd_per_solved, dollars)]
    scores = [
        _RIGHT,
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
        Column("handed in", "handed in", lambda row: row.handed_in),
        *(_RIGHT, _COMPILED, _REJECTED),
        *(_fast(p, by_point=by_point) for p in thresholds for by_point in (False, True)),
        *(_MEAN, _OVER_ALL),
        Column("speedup clock low", "", lambda row: row.speedup.low if row.speedup else None),
        Column("speedup clock high", "", lambda row: row.speedup.high if row.speedup else None),
        *(_at_k(name, k) for name in ("pass", "fast_1") for k in ks),
        _roofline(roofline),
        Column("usd", "$", lambda row: row.cost.usd if row.cost else None),
        Column("usd per solved", "$ per solved", usd_per_solved),
    ]


def _all_columns_of(report: Report) -> list[Column[Row]]:
    by = report.by or "source"
    return all_columns(rows_of(report), by, roofline_by(by, report.per_problem))


def _ends_of_best(row: ProblemScores) -> Ends:
    return (row.best.low, row.best.high) if row.best else None


_OF_PROBLEM: Final[tuple[Column[ProblemScores], ...]] = (
    Column("problem", "problem", lambda row: row.problem),
    Column("category", "category", lambda row: row.category),
    Column("kind", "kind", lambda row: row.kind),
    Column("samples", "samples", lambda row: row.samples),
    Column("right", "right", lambda row: row.right),
    Column("outcomes", "outcomes", lambda row: ", ".join(f"{n} {o}" for o, n in row.outcomes.items())),
    Column("best speedup", "best", lambda row: row.best.point if row.best else None, times, _ends_of_best),
    Column("median speedup", "median", lambda row: row.median, times),
    Column("spread", "spread", lambda row: row.spread, times),
    Column("roofline share", "roofline", lambda row: row.roofline, percent),
    Column("usd per solved", "$ per solved", lambda row: row.usd_per_solved, dollars),
)
_ONLY_DATA: Final = ("category", "kind", "samples")


def print_markdown(report: Report, stream: TextIO) -> None:
    """A table that Markdown and its readers take, and below it what was measured."""
    heads, cells = _grid(report)
    for line in (heads, ["---", *["---:"] * (len(heads) - 1)], *cells):
        print(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |", file=stream)
    print(file=stream)
    for words in legend(report):
        print(f"{words}  ", file=stream)


def print_latex(report: Report, stream: TextIO) -> None:
    """A ``tabular`` in the manner of booktabs; what was measured stands above it as a comment."""
    heads, cells = _grid(report)
    for line in legend(report):
        print(f"% {line}", file=stream)
    print(f"\\begin{{tabular}}{{{'l' + 'r' * (len(heads) - 1)}}}\n\\toprule", file=stream)
    for number, row in enumerate([heads, *cells]):
        print(f"{' & '.join(map(_latex, row))} \\\\", file=stream)
        if number == 0:
            print("\\midrule", file=stream)
    print("\\bottomrule\n\\end{tabular}", file=stream)


def print_csv(report: Report, stream: TextIO) -> None:
    """Numbers as they are, none rounded; ``…_low`` and ``…_high`` are the ends of the interval.

    Only with ``--by``: CSV without it is tidy data, a row per case and sample, of ``export/tidy.py``.
    """
    writer = csv.writer(stream, lineterminator="\n")
    if report.by == "problem":
        _write_csv(writer.writerow, _OF_PROBLEM, report.per_problem, report)
    else:
        rows = rows_of(report)
        _write_csv(writer.writerow, _all_columns_of(report), rows, report)


def _write_csv(
    write: Callable[[list[object]], object], columns: Sequence[Column[_T]], rows: Sequence[_T], report: Report
) -> None:
    names = (name for column in columns for name in _names(column))
    write([*names, "run", "kgbench", "problem_set_sha256"])
    for row in rows:
        numbers = [number for column in columns for number in _numbers(column, row)]
        write([*numbers, *(report.info.get(key) for key in ("id", "kgbench", "problem_set_sha256"))])


def _names(column: Column[_T]) -> Iterable[str]:
    name = re.sub(r"[ (]+", "_", column.name).replace(")", "")
    yield name
    if column.ends:
        yield from (f"{name}_low", f"{name}_high")


def _numbers(column: Column[_T], row: _T) -> Iterable[Number]:
    yield column.value(row)
    if column.ends:
        yield from column.ends(row) or (None, None)


def _grid(report: Report) -> tuple[list[str], list[list[str]]]:
    if report.by == "problem":
        shown = [each for each in _OF_PROBLEM if each.name not in _ONLY_DATA]
        shown = [each for each in shown if any(each.value(row) not in (None, "") for row in report.per_problem)]
        return [each.head for each in shown], [[each.cell(row) for each in shown] for row in report.per_problem]
    rows = rows_of(report)
    of_rows = columns(rows, report.by or "source", roofline_by(report.by or "source", report.per_problem))
    return [each.head for each in of_rows], [[each.cell(row) for each in of_rows] for row in rows]


def rows_of(report: Report) -> tuple[Row, ...]:
    """Those asked for; by source the ones over several sources below them."""
    return report.groups if report.by not in (None, "source") else (*report.rows, *report.overall)


def legend(report: Report) -> Iterable[str]:
    """What a table by itself does not say: what the brackets are, whose run, on what, over which problems."""
    from kgbench.reports.report import problem_set_words

    info = report.info
    device = info.get("device") or {}
    if report.by == "problem":
        yield "[ ]: the clock's 95 % interval of a speedup. Roofline: share of the device's measured peak."
    else:
        yield "[ ]: 95 % bootstrap interval over problems and samples."
        yield "speedup: geometric mean of the right ones; over all: a failure counts as 1/1000."
    driver = f", driver {device['driver']}" if device.get("driver") else ""
    yield f"Run {info.get('id')} of {info.get('model')} on {device.get('name') or 'unknown'}{driver}."
    yield problem_set_words(report)


_LATEX: Final = {
    **{char: f"\\{char}" for char in "%_&#${}"},
    ABSENT: "--",
    "~": r"\textasciitilde ",
    "^": r"\textasciicircum ",
}


def _latex(cell: str) -> str:
    escaped = cell.replace("\\", r"\textbackslash ")
    for char, written in _LATEX.items():
        escaped = escaped.replace(char, written)
    return re.sub(r"(\d)x\b", r"\1$\\times$", escaped)


def intervals_table(rows: Sequence[Row], overall: Sequence[Row] = (), by: str = "source") -> Table:
    """Value above, interval below: six headline scores fit 80 columns. Rows over all sources are of kind compute."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("95 % over\nproblems")
    if by != "source":  # there the table above counts them
        table.add_column("count", justify="right")
    every = [*rows, *overall]
    shown = [each for each in _headline(every) if any(each.value(row) is not None for row in every)]
    for column in shown:
        table.add_column(column.head, justify="right", no_wrap=True)
    for row in every:
        plain = row in overall or (by != "source" and row.kinds == "compute")
        name = row.source if plain else f"{row.source} {row.kinds}"
        count = [] if by == "source" else [str(row.problems)]
        table.add_row(name, *count, *(_two_lines(column, row) for column in shown))
    return table


def _headline(rows: Sequence[Row]) -> list[Column[Row]]:
    most = max((row.samples for row in rows), default=1)
    best = [_at_k("pass", most)] if most > 1 else [_COMPILED]
    return [_RIGHT, _fast(1.0), _MEAN, _OVER_ALL, *best, _REJECTED]


def headline_cells(row: Row, names: Sequence[str]) -> Iterable[str]:
    """Value above, interval below, of headline scores by name."""
    by_name = {each.name: each for each in _headline([row])}
    return (_two_lines(by_name[name], row) for name in names)


def _two_lines(column: Column[Row], row: Row) -> str:
    """The ends of a share in whole percents."""
    value = column.value(row)
    ends = column.ends(row) if column.ends else None
    if not isinstance(value, int | float) or not ends or not column.words:
        return column.cell(row)
    words = [f"{100 * end:.0f}" if column.words is percent else ratio_text(end) for end in ends]
    return f"{column.words(value)}\n{'–'.join(words)}"


def _problems_table(report: Report) -> Table:
    """Without the ends of intervals, so that names are whole in 80 columns."""
    heads, cells = _grid(report)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for head in heads:
        left = head in ("problem", "outcomes")
        table.add_column(head, justify="left" if left else "right", no_wrap=head != "outcomes")
    for cells_of_one in cells:
        table.add_row(*(cell.partition(" [")[0] for cell in cells_of_one))
    return table


def terminal_tables(report: Report) -> Iterable[Table]:
    """What was counted, then every headline score with its bootstrap interval."""
    from kgbench.reports.report import score_table

    if report.by == "problem":
        yield _problems_table(report)
        return
    if report.by in (None, "source"):
        yield score_table(report.rows)
        yield intervals_table(report.rows, report.overall)
    else:
        yield intervals_table(report.groups, by=report.by)


def frame_of(report: Report) -> pd.DataFrame:
    """The rows that CSV has, for pandas: numbers as they are, NaN where there is none."""
    import pandas as pd

    if report.by == "problem":
        return pd.DataFrame([_record(_OF_PROBLEM, row) for row in report.per_problem])
    rows = rows_of(report)
    shown = _all_columns_of(report)
    return pd.DataFrame([_record(shown, row) for row in rows])


def _record(columns: Sequence[Column[_T]], row: _T) -> dict[str, Number]:
    pairs = (zip(_names(column), _numbers(column, row), strict=True) for column in columns)
    return {name: number for each in pairs for name, number in each}
