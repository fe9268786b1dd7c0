"""Tables in Markdown, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_RULES: Final = {"l": "---", "r": "---:"}


def table_row(cells: Iterable[object]) -> str:
    """One row. A cell stays in its line and its column, whatever stands in it."""
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in cells)} |"


def table(heads: Sequence[object], rows: Iterable[Iterable[object]], align: str) -> Iterator[str]:
    """``align``: a letter for each column, ``l`` for left and ``r`` for right."""
    yield table_row(heads)
    yield f"|{'|'.join(_RULES[each] for each in align)}|"
    yield from map(table_row, rows)
