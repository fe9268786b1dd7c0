"""Reads BackendBench's data set of operator calls of models, as parquet or trace text. Imports no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import UsageError
from kgbench.problem.calls import TraceError, format_call, parse_call
from kgbench.problem.trace_files import TracedCall, read_trace_file

NEEDED: Final = ("op_name", "args", "included_in_benchmark", "count")
"""Columns that a parquet file of the data set must have."""
USED: Final = (*NEEDED, "why_excluded", "is_overhead_dominated_op")


@dataclass(frozen=True)
class Traced:
    """The calls of a file, and the number of excluded calls by reason."""

    calls: tuple[TracedCall, ...]
    excluded: dict[str, int] = field(default_factory=dict)


def read_torchbench(path: Path, *, everything: bool) -> Traced:
    """The calls of a file. ``everything``: also those that the data set excludes from its benchmark.

    Raises ValueError, which names file and line, when the content is wrong; UsageError when it is parquet and pyarrow
    is missing; OSError or UnicodeDecodeError when the file cannot be read.
    """
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        return Traced(tuple(read_trace_file(path)))
    calls: list[TracedCall] = []
    excluded: Counter[str] = Counter()
    for number, row in enumerate(_rows(path), 1):
        if row["included_in_benchmark"] or everything:
            calls.append(_call(path, number, row))
        else:
            excluded.update([", ".join(map(str, row.get("why_excluded") or ())) or "without a reason"])
    return Traced(tuple(calls), dict(excluded))


def _rows(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UsageError(
            "KGB143", f"{path}: reading parquet needs pyarrow: pip install 'kgbench[parquet]', or give the trace text"
        ) from None
    try:
        file = parquet.ParquetFile(path)
        present = file.schema_arrow.names
        if missing := [name for name in NEEDED if name not in present]:
            raise ValueError(f"{path}: has no column {missing[0]}; it has {', '.join(present)}")
        for batch in file.iter_batches(columns=[name for name in USED if name in present]):
            yield from batch.to_pylist()
    except ArrowException as error:
        raise ValueError(f"{path}: cannot be read as parquet: {error}") from None


def _call(path: Path, number: int, row: Mapping[str, Any]) -> TracedCall:
    try:
        text = format_call(parse_call(str(row["args"])))
    except TraceError as error:
        raise ValueError(f"{path}: row {number}: args: the call's {error}") from None
    overhead = bool(row.get("is_overhead_dominated_op"))
    return TracedCall(str(row["op_name"]), int(row["count"] or 0), text, number, overhead)
