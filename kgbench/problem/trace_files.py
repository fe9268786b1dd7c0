"""Reads trace files: the operator calls that a model made, as text. Imports no torch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.problem.calls import TraceError, format_call, parse_call


@dataclass(frozen=True)
class TracedCall:
    """One ``cnt:`` line of a trace file."""

    operator: str
    """``aten.add.Tensor``."""
    count: int
    """Number of times that the traced model made the call; 0 for a synthetic call."""
    call: str
    line: int
    """Line in the file, counted from 1."""
    overhead: bool = False
    """Whether the data set says that launching the call takes longer than its work."""


def read_trace_file(path: Path) -> list[TracedCall]:
    """The calls of a trace file: lines ``Operator: aten.add.Tensor`` and, below each, ``cnt: 156, ((…), {})``.

    Empty lines and lines that begin with # are skipped. Raises ValueError, whose message begins with ``FILE:LINE: ``,
    for any other line; OSError or UnicodeDecodeError when the file cannot be read.
    """
    calls: list[TracedCall] = []
    operator = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word, _, rest = line.strip().partition(":")
        if not line.strip() or word.startswith("#"):
            continue
        if word == "Operator" and _OPERATOR.match(rest.strip()):
            operator = rest.strip()
        elif word == "cnt" and operator:
            calls.append(_traced(path, number, operator, rest))
        else:
            expected = "Operator: NAMESPACE.NAME.OVERLOAD" + (" or cnt: COUNT, ((…), {…})" if operator else "")
            raise ValueError(f"{path}:{number}: expected '{expected}', got '{line.strip()[:60]}'")
    return calls


_OPERATOR: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){1,2}$")


def _traced(path: Path, number: int, operator: str, rest: str) -> TracedCall:
    count, comma, text = (part.strip() for part in rest.partition(","))
    if not (comma and count.isdecimal() and count.isascii()):
        raise ValueError(f"{path}:{number}: expected 'cnt: COUNT, ((…), {{…}})' with a whole number, 0 or more")
    try:
        text = format_call(parse_call(text))
    except TraceError as error:
        raise ValueError(f"{path}:{number}: the call's {error}") from None
    return TracedCall(operator, int(count), text, number)
