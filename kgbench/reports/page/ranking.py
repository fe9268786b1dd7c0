"""The leaderboard as one file of HTML: tables alone, so it needs no script. Whatever a run says is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from kgbench.core.figures import ABSENT
from kgbench.reports.columns import Column
from kgbench.reports.leaderboard import Board, Entry
from kgbench.reports.page.document import asset, hash_of, write_files
from kgbench.reports.page.source import shown
from kgbench.reports.score_tables import ranking_cells, ranking_columns
from kgbench.scores.rows import Row

_BEFORE: Final = ("#", "model", "problems")
_BEHIND: Final = ("begun", "policy", "run")
_TEXTS: Final = ("model", *_BEHIND)
"""Columns of text."""


def write_leaderboard(boards: Iterable[Board], path: Path) -> int:
    """Bytes of the file that it writes. Raises UsageError."""
    return write_files({path: leaderboard_page(boards).encode()}, path)


def leaderboard_page(boards: Iterable[Board]) -> str:
    """The page's text; the same boards give the same."""
    found = tuple(boards)
    shown_scores = ranking_columns([entry.row for board in found for entry in board.entries])
    style, heads = asset("page.css"), (*_BEFORE, *(each.head for each in shown_scores), *_BEHIND)
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(asset("leaderboard.html.j2")).render(
        policy=f"default-src 'none'; style-src {hash_of(style)}; base-uri 'none'; form-action 'none'",
        style=style,
        heads=heads,
        texts=[number for number, head in enumerate(heads) if head in _TEXTS],
        boards=[_board(board, shown_scores) for board in found],
    )


def _board(board: Board, scores: Sequence[Column[Row]]) -> dict[str, Any]:
    return {
        "device": shown(board.device),
        "source": shown(board.source),
        "library": shown(board.library),
        "problem_set": shown(str(board.problem_set)),
        "rows": [_row(entry, scores) for entry in board.entries],
    }


def _row(entry: Entry, scores: Sequence[Column[Row]]) -> Sequence[Sequence[str]]:
    """Cells, each as lines."""
    row = entry.row
    problems = [str(row.problems), *[f"of {row.declared}"] * row.is_subset()]
    run = [shown(entry.run), *[entry.unfinished] * bool(entry.unfinished)]
    rest = ([entry.date], [entry.policy or ABSENT], run)
    return [[str(entry.rank or ABSENT)], [shown(entry.model)], problems, *ranking_cells(row, scores), *rest]
