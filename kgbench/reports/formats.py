"""The tables of a report for other programs: Markdown, LaTeX, CSV, and a frame for pandas."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

from kgbench.core.figures import ABSENT
from kgbench.reports.columns import PROBLEM_COLUMNS, Column, Number, grid, report_columns, rows_of
from kgbench.reports.markdown import table_row
from kgbench.reports.model import Report
from kgbench.reports.words import problem_set_words
from kgbench.scores.table import SCORES

if TYPE_CHECKING:
    import pandas as pd

_T = TypeVar("_T")


def print_markdown(report: Report, stream: TextIO) -> None:
    """A Markdown table, and below it what was measured."""
    heads, cells = grid(report)
    for line in (heads, ["---", *["---:"] * (len(heads) - 1)], *cells):
        print(table_row(line), file=stream)
    print(file=stream)
    for words in legend(report):
        print(f"{words}  ", file=stream)


def print_latex(report: Report, stream: TextIO) -> None:
    """A ``tabular`` in the manner of booktabs; what was measured stands above it as a comment."""
    heads, cells = grid(report, sign=_CROSS)
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
        _write_csv(writer.writerow, PROBLEM_COLUMNS, report.per_problem, report)
    else:
        rows = rows_of(report)
        _write_csv(writer.writerow, report_columns(report), rows, report)


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


def legend(report: Report) -> Iterable[str]:
    """What a table alone does not say: the brackets, the run, the device, the problems."""
    info = report.info
    device = info.get("device") or {}
    if report.by == "problem":
        yield "[ ]: the clock's 95 % interval of a speedup. Roofline: share of the device's measured peak."
    else:
        yield "[ ]: 95 % bootstrap interval over problems and samples."
        known = {name for row in rows_of(report) for name in row.values}
        said = [score for score in SCORES if score.legend and (not score.optional or score.name in known)]
        yield f"{'; '.join(f'{score.head}: {score.legend}' for score in said)}."
    driver = f", driver {device['driver']}" if device.get("driver") else ""
    yield f"Run {info.get('id')} of {info.get('model')} on {device.get('name') or 'unknown'}{driver}."
    yield problem_set_words(report.info)


_CROSS: Final = "×"
_LATEX: Final = {
    **{char: f"\\{char}" for char in "%_&#${}"},
    _CROSS: r"$\times$",
    ABSENT: "--",
    "~": r"\textasciitilde ",
    "^": r"\textasciicircum ",
}


def _latex(cell: str) -> str:
    escaped = cell.replace("\\", r"\textbackslash ")
    for char, written in _LATEX.items():
        escaped = escaped.replace(char, written)
    return escaped


def frame_of(report: Report) -> pd.DataFrame:
    """The rows that CSV has, for pandas: numbers as they are, NaN where there is none."""
    import pandas as pd

    if report.by == "problem":
        return pd.DataFrame([_record(PROBLEM_COLUMNS, row) for row in report.per_problem])
    rows = rows_of(report)
    shown = report_columns(report)
    return pd.DataFrame([_record(shown, row) for row in rows])


def _record(columns: Sequence[Column[_T]], row: _T) -> dict[str, Number]:
    pairs = (zip(_names(column), _numbers(column, row), strict=True) for column in columns)
    return {name: number for each in pairs for name, number in each}
