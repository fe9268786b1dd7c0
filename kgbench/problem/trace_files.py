"""Trace files: the calls that a model made, as text. Torch-free."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.problem.calls import TraceError, parse_call


@dataclass(frozen=True)
class TracedCall:
    """One ``cnt:`` line of a trace file."""

    operator: str
    """``aten.add.Tensor``."""
    count: int
    """How often the traced model made the call; 0 for one that somebody made up."""
    call: str
    line: int
    """Counts from 1."""
    overhead: bool = False
    """The data set says that launching it takes longer than its work."""


def read_trace_file(path: Path) -> list[TracedCall]:
    """The calls of a trace file: lines ``Operator: aten.add.Tensor`` and, below each, ``cnt: 156, ((…), {})``.

    Empty lines and lines that begin with # say nothing. ValueError, with ``FILE:LINE: `` in front, where a line is
    neither; OSError and UnicodeDecodeError rise.
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
        parse_call(text)
    except TraceError as error:
        raise ValueError(f"{path}:{number}: the call's {error}") from None
    return TracedCall(operator, int(count), text, number)
