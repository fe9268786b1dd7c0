"""A place in a problem file."""

from __future__ import annotations

from dataclasses import dataclass

from kgbench.core.errors import ExpressionError, shown_path


@dataclass(frozen=True)
class FilePlace:
    """File, line and key. Lines are counted from 1."""

    file: str
    line: int
    key: str

    def __str__(self) -> str:
        return f"{shown_path(self.file)}:{self.line}: {self.key}"


def expression_error(number: str, words: str, place: FilePlace | None) -> ExpressionError:
    """An ExpressionError whose message begins with its place. ``place``: None when the expression is in no file."""
    return ExpressionError(number, words) if place is None else ExpressionError(number, f"{place}: {words}", place.line)
