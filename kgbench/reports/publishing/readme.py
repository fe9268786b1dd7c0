"""The table of results in README.md, between two comments that say which published run it is of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kgbench.reports.columns import score_column
from kgbench.reports.markdown import table
from kgbench.reports.model import Report
from kgbench.scores.rows import Row
from kgbench.scores.table import score_of
from kgbench.store.errors import StoreError

README: Final = "README.md"
_TABLE: Final = re.compile(r"(<!-- results/(\S+) -->\n).*?(<!-- end of the table -->)", re.DOTALL)
_SCORES: Final = ("correct", "fast_1", "speedup")
"""Names of the scores of each run."""


def with_tables(text: str, rounds: Mapping[str, Sequence[Report]]) -> str:
    """The text with its tables written anew. ``rounds``: the reports of a published run and of those that follow it, by
    the run's folder. Raises StoreError where a table is of a run that is not published.
    """

    def written(match: re.Match[str]) -> str:
        begin, folder, end = match.groups()
        if folder not in rounds:
            raise StoreError("KGB434", f"{README}: it has a table of results/{folder}, which is not published")
        return begin + "".join(f"{line}\n" for line in _table(rounds[folder])) + end

    return _TABLE.sub(written, text)


def _table(reports: Sequence[Report]) -> Iterator[str]:
    """The first round beside the last one."""
    columns = [score_column(score, score.head) for score in map(score_of, _SCORES)]
    ends = sorted({1, len(reports)})
    heads = [column.head if number == 1 else f"{column.head} after {number} rounds"
             for number in ends for column in columns]  # fmt: skip
    lines = (
        [rows[0].source, rows[0].problems, *(column.point(row) for row in rows for column in columns)]
        for rows in zip(*(_rows(reports[number - 1]) for number in ends), strict=True)
    )
    return table(["source", "problems", *heads], lines, "l" + "r" * (1 + len(heads)))


def _rows(report: Report) -> list[Row]:
    """Problems of kind compute by source, then all of them, each problem with the same weight."""
    return [row for row in (*report.rows, *report.overall[:1]) if row.kinds == "compute"]
