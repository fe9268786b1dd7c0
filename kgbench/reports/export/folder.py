"""Writes result files of other benchmarks into a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from kgbench.core.errors import UsageError
from kgbench.core.types import CaseResult, Result, Timing
from kgbench.reports.model import Report
from kgbench.reports.words import failed_line
from kgbench.scores.speedups import Estimate, speedup, timed_cases
from kgbench.store.encoding import json_text

Files = Mapping[str, str]
"""Text by path below the folder; the first one is what the format is about."""


def json_file(value: Any) -> str:
    """Strict JSON, as the projects indent it: a number that is not finite becomes null."""
    return json_text(_finite(value), indent=2) + "\n"


def _finite(value: Any) -> Any:
    match value:
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
        case Mapping():
            return {str(key): _finite(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_finite(entry) for entry in value]
    return value


def write(files: Files, folder: Path) -> None:
    """Write files, and make the folder if needed. Raises UsageError."""
    for name, text in files.items():
        path = folder / name
        with writable(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raises UsageError where a file cannot be written."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        words = f"{where}: cannot be written: {error.strerror}; give --to another place"
        raise UsageError("KGB187", words) from error


def print_first(files: Files, stream: TextIO) -> None:
    stream.write(next(iter(files.values())))


def attempts_by_problem(report: Report) -> dict[str, list[Result]]:
    """Attempts of every selected problem, in its order; by sample, then by round."""
    found: dict[str, list[Result]] = {problem.id: [] for problem in report.selected}
    for result in report.attempts:
        if result.problem in found:
            found[result.problem].append(result)
    return {name: sorted(each, key=lambda r: (r.sample, r.round)) for name, each in found.items()}


def speed(result: Result) -> Estimate | None:
    """Speedup against the library; None where speed means nothing."""
    return None if result.interpreted else speedup(result)


def timed(result: Result) -> list[tuple[CaseResult, Timing]]:
    """Bench cases with a time beside the library; none where speed means nothing."""
    cases = [] if result.interpreted else timed_cases(result)
    return [(case, case.timing) for case in cases if case.timing and case.timing.against == "library"]


def why(result: Result) -> str:
    """Outcome and first words of a result that is not correct."""
    return failed_line(result)
