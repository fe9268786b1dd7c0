"""Tidy data: one row per case and sample, every column with a kind and a unit. ``docs/data.md`` has the same table."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

from kgbench.core.errors import UsageError
from kgbench.core.kinds import Kind
from kgbench.core.text import plain
from kgbench.core.types import CaseResult, Result
from kgbench.reports.model import Report
from kgbench.reports.words import numbered_as
from kgbench.store.encoding import json_text

if TYPE_CHECKING:
    from pandas import DataFrame

NOT_EVALUATED: Final = "not evaluated"
"""The outcome of a sample that was asked for and has no result; it counts as not correct."""


@dataclass(frozen=True)
class Row:
    """The data of a row. ``result`` is None for a sample without one, ``case`` for a result without cases."""

    report: Report
    problem: str
    kind: Kind
    sample: int
    result: Result | None = None
    case: CaseResult | None = None
    scored: bool = True


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    """``text``, ``integer``, ``number`` or ``truth``."""
    unit: str
    meaning: str
    of: Callable[[Row], Any]


def _of_run(*path: str) -> Callable[[Row], Any]:
    def of(row: Row) -> Any:
        found: Any = row.report.info
        for key in path:
            found = (found or {}).get(key)
        return found

    return of


def _of_result(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.result, name, None)


def _of_case(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.case, name, None)


def _of_timing(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.case.timing, name, None) if row.case else None


def _ratio(name: str) -> Callable[[Row], Any]:
    """The ratio; None for a candidate in Triton's interpreter, whose speed means nothing."""
    of = _of_timing(name)
    return lambda row: None if row.result and row.result.interpreted else of(row)


def _of_generation(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.result.generation, name, None) if row.result else None


def _of_phase(name: str) -> Callable[[Row], Any]:
    return lambda row: row.result.seconds.get(name) if row.result else None


def _library(row: Row) -> str | None:
    return row.result.library.name or None if row.result and row.result.library else None


COLUMNS: Final = (
    Column("run", "text", "", "id of the run", _of_run("id")),
    Column("model", "text", "", "what wrote the candidates, as `--model` named it", _of_run("model")),
    Column("model_id", "text", "", "exact id that answered, as the provider names it", _of_generation("model_id")),
    Column("problem", "text", "", "id of the problem", lambda row: row.problem),
    Column("source", "text", "", "`aten`, `cublas`, `vllm` or a folder of yours",
           lambda row: row.problem.partition("/")[0]),
    Column("kind", "text", "", "kind of the problem; speed is scored of `compute`", lambda row: row.kind),
    Column("sample", "integer", "", "number of the sample, from 0", lambda row: row.sample),
    Column("round", "integer", "", "attempt at the sample, from 0", _of_result("round")),
    Column("scored", "truth", "", "this round is the sample's best, the one that scores count", lambda row: row.scored),
    Column("outcome", "text", "", "verdict on the candidate; `not evaluated` where there is none",
           lambda row: str(row.result.outcome) if row.result else NOT_EVALUATED),
    Column("reason", "text", "", "why it is not correct, in words", _of_result("reason")),
    Column("overload", "text", "", "overload that the case calls", _of_case("overload")),
    Column("case", "text", "", "id of the case within its overload", _of_case("id")),
    Column("phase", "text", "", "`check`, `fuzz` or `bench`", _of_case("phase")),
    Column("dtype", "text", "", "dtype of the case", _of_case("dtype")),
    Column("variables", "text", "JSON", "what the case is called with: shapes, flags, scalars",
           lambda row: json_text(row.case.variables) if row.case else None),
    Column("case_outcome", "text", "", "verdict on the case",
           lambda row: str(row.case.outcome) if row.case else None),
    Column("case_reason", "text", "", "why the case is not correct", _of_case("reason")),
    Column("case_seconds", "number", "s", "wall time of the case", _of_case("seconds")),
    Column("library", "text", "", "what it was compared with, and its version", _library),
    Column("against", "text", "", "`library`, or `fallback` where the library does not run", _of_timing("against")),
    Column("library_us", "number", "µs", "time of one call of the library, on the device, cold cache",
           _of_timing("library_us")),
    Column("candidate_us", "number", "µs", "time of one call of the candidate, likewise", _of_timing("candidate_us")),
    Column("speedup", "number", "1", "library / candidate, paired by window, neither rounded nor clamped",
           _ratio("ratio")),
    Column("speedup_low", "number", "1", "lower end of its interval", _ratio("low")),
    Column("speedup_high", "number", "1", "upper end of its interval", _ratio("high")),
    Column("scored_by", "text", "", "`window`, `secured` or `single`: which clock decided", _of_timing("scored_by")),
    Column("launch_bound", "truth", "", "the library takes less than 10 µs", _of_timing("launch_bound")),
    Column("call_us", "number", "µs", "one call of the candidate with its launch; not scored", _of_timing("call_us")),
    Column("library_call_us", "number", "µs", "one call of the library with its launch", _of_timing("library_call_us")),
    Column("noise", "number", "1", "half-width of the null test's noise within the interval", _of_timing("noise")),
    Column("interpreted", "truth", "", "ran in Triton's interpreter: no speedup is given", _of_result("interpreted")),
    Column("deterministic", "truth", "", "same bits in calls that were made twice", _of_result("deterministic")),
    Column("policy", "text", "", "`strict`, `report` or `off`", _of_result("policy")),
    Column("total_seconds", "number", "s", "wall time of the whole candidate", _of_phase("total")),
    Column("input_tokens", "integer", "tokens", "neither read from a cache nor written to one",
           _of_generation("input_tokens")),
    Column("cache_read_tokens", "integer", "tokens", "read from the provider's cache",
           _of_generation("cache_read_tokens")),
    Column("cache_write_tokens", "integer", "tokens", "written to it", _of_generation("cache_write_tokens")),
    Column("output_tokens", "integer", "tokens", "thinking included", _of_generation("output_tokens")),
    Column("usd", "number", "USD", "price of the reply", _of_generation("usd")),
    Column("device", "text", "", "name of the device", _of_run("device", "name")),
    Column("driver", "text", "", "its driver", _of_run("device", "driver")),
    Column("kgbench", "text", "", "version of kgbench and of its problems", _of_run("kgbench")),
    Column("problem_set_sha256", "text", "", "over the ids and files of the run's problems",
           _of_run("problem_set_sha256")),
    Column("problem_sha256", "text", "", "of the problem's file", _of_result("problem_sha256")),
    Column("candidate_sha256", "text", "", "of the candidate's text", _of_result("candidate_sha256")),
)  # fmt: skip
_DTYPES: Final = {"text": "string", "integer": "Int64", "number": "Float64", "truth": "boolean"}


def rows(report: Report) -> Iterator[Row]:
    """Rows by problem as selected, then sample, round and case. Every requested sample has at least one."""
    scored = {each.key for each in report.results}
    by_problem: dict[str, list[Result]] = {}
    for result in report.attempts:
        by_problem.setdefault(result.problem, []).append(result)
    for problem in report.selected:
        found = sorted(by_problem.get(problem.id, ()), key=lambda each: (each.sample, each.round, each.model))
        for result in found:
            is_scored = result.key in scored
            for case in result.cases or (None,):
                yield Row(report, problem.id, problem.kind, result.sample, result, case, is_scored)
        for sample in sorted(set(range(problem.samples)) - {each.sample for each in found}):
            yield Row(report, problem.id, problem.kind, sample)


def records(report: Report) -> Iterator[dict[str, Any]]:
    """Values by column; None where there is none. Text without control characters."""
    for row in rows(report):
        yield {column.name: _clean(column.of(row), column.type) for column in COLUMNS}


def _clean(value: Any, kind: str) -> Any:
    match value:
        case None | "":
            return None
        case str():
            # A lone surrogate is not printable either, and no UTF-8.
            return value if value.isprintable() else plain(value.encode("utf-8", "replace").decode())
        case bool():
            return value
        case int() if kind == "number":
            return float(value)
    return value


def print_csv(report: Report, stream: TextIO) -> None:
    """RFC 4180 with a header; ``true`` and ``false``, and nothing where there is no value. Floats keep all digits."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([column.name for column in COLUMNS])
    for record in records(report):
        writer.writerow([_cell(value) for value in record.values()])


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def frame(report: Report) -> DataFrame:
    """The same rows for pandas, with a dtype that knows a missing value in each column."""
    import pandas as pd

    values: dict[str, list[Any]] = {column.name: [] for column in COLUMNS}
    for record in records(report):
        for name, value in record.items():
            values[name].append(value)
    return pd.DataFrame(
        {column.name: pd.array(values[column.name], dtype=_DTYPES[column.type]) for column in COLUMNS}  # type: ignore[call-overload]
    )


def print_parquet(report: Report, stream: TextIO) -> None:
    """Raises UsageError without pyarrow, and where a terminal would get the bytes."""
    if stream.isatty():
        raise UsageError("KGB185", "--format parquet writes bytes, and this is a terminal; give --to FILE.parquet")
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "KGB186", "--format parquet needs pyarrow: pip install 'kgbench[parquet]', or take --format csv"
        ) from error
    whole = io.BytesIO()
    frame(report).to_parquet(whole, index=False, engine="pyarrow")
    stream.flush()
    stream.buffer.write(whole.getvalue())
    stream.buffer.flush()


def sample_name(row: Row) -> str:
    """``aten/add sample 2``: without its best round, so that a test keeps its name from run to run."""
    return row.problem + numbered_as(row.sample, 0)


def one_per_sample(report: Report) -> Iterable[Row]:
    """The scored result of each sample, and those that have none."""
    done: set[tuple[str, str, int]] = set()
    for row in rows(report):
        key = (row.problem, row.result.model if row.result else "", row.sample)
        if row.scored and key not in done:
            done.add(key)
            yield row
