"""The start of a sentence: in which call it happened."""

from __future__ import annotations

from typing import Final

from kgbench.core.details.where import Purpose, Where

MOST_SIZES: Final = 12
"""Sizes and flags of a case that a sentence names."""
_REQUESTS: Final = {
    Purpose.START: "start",
    Purpose.IMPORT: "import",
    Purpose.LIBRARY: "loading the library",
    Purpose.MAPPING: "mapping memory",
    Purpose.OBSERVED: "observing",
    Purpose.DEVICE: "probing the device",
}
"""Names of the requests to a worker that are no call of a case."""


def place(where: Where | None) -> str:
    """``case 1-float32 (m=3, n=5): ``; empty where no place is known."""
    if where is None:
        return ""
    if not where.case:
        return f"{_REQUESTS.get(where.purpose, str(where.purpose))}: "
    shown = list(where.sizes.items())[:MOST_SIZES]
    sizes = f" ({', '.join(f'{name}={value}' for name, value in shown)})" if shown else ""
    return f"case {where.case}{sizes}: {moment(where)}"


def moment(where: Where | None) -> str:
    """In which of a case's calls: ``correct at first, then wrong: ``; empty for the first."""
    if where is None:
        return ""
    repeated = "correct, then wrong with the same input: " if where.repeated else ""
    match where.purpose:
        case Purpose.AGAIN:
            return f"correct at first, then wrong: {repeated}"
        case Purpose.WINDOW:
            return f"in a timed window: {repeated}"
        case Purpose.PROBE:
            return "in a timed window: its inputs were taken away when it said that its calls were done: "
        case Purpose.PREPARING | Purpose.TIMING:
            return f"{where.purpose}: "
    return repeated
