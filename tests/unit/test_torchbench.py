"""BackendBench's data set as a suite: which calls are taken, which are timed, what is said of them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kgbench.core.errors import UsageError
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Timing
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import load_problem
from kgbench.problem.suites import Suite, check_name, make_suite, with_suite
from kgbench.problem.torchbench_files import read_torchbench
from kgbench.reports.suite import suite_lines, suite_rows, suite_table
from tests.unit.made_results import result

pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'kgbench[parquet]'")

COLUMNS = ("op_name", "args", "included_in_benchmark", "why_excluded", "count", "is_overhead_dominated_op")
ROWS: list[tuple[Any, ...]] = [
    *(("aten.cos.default", f"((T([{size}], f32),), {{}})", True, [], 10 * size, False) for size in (1, 2, 3, 4, 5, 6)),
    *(("aten.cos.default", f"((T([{size}, 2],  f32),), {{}})", True, [], 1, True) for size in (1, 2, 3)),
    ("aten.cos.default", "((T([7], f32),), {})", False, ["made by hand"], 5, False),
    ("aten.bernoulli.default", "((T([7], f32),), {})", False, None, 5, False),
    ("aten.nosuch.default", "((T([7], f32),), {})", True, [], 5, False),
]


def written(path: Path, rows: list[tuple[Any, ...]] = ROWS, columns: tuple[str, ...] = COLUMNS) -> str:
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({name: [row[at] for row in rows] for at, name in enumerate(columns)}), path)
    return f"torchbench:{path}"


def problem() -> Problem:
    return load_problem(problems_dir() / "aten" / "cos.yaml")


def suite_of(tmp_path: Path, name: str = "") -> Suite:
    return make_suite(written(tmp_path / "t.parquet") + name, [problem()], DeviceKind.CPU)


def test_only_what_is_included_is_taken_and_the_rest_is_counted(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    assert suite.shares[0].samples == 9
    assert suite.excluded == {"made by hand": 1, "without a reason": 1}
    assert suite.missing == {"aten.nosuch.default": 1}
    everything = suite_of(tmp_path, "#all")
    assert (everything.shares[0].samples, everything.excluded) == (10, {})
    assert Suite.from_json(suite.to_json()) == suite


def test_the_most_frequent_calls_are_timed_and_two_that_their_launch_dominates(tmp_path: Path) -> None:
    calls = [call for each in suite_of(tmp_path).shares[0].calls.values() for call in each]
    assert [call.count for call in calls if call.timed and not call.overhead] == [30, 40, 50, 60]
    assert sum(call.timed and call.overhead for call in calls) == 2
    judged = with_suite(problem(), suite_of(tmp_path))
    (overload,) = [each for each in judged.overloads if each.check]
    cases = expand_cases(overload, DeviceKind.CPU, None, "")
    assert sum(case.phase == "bench" for case in cases) == 6
    assert len(cases) == 9


def test_the_trace_text_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("Operator: aten.cos.default\ncnt: 3, ((T([4], f32),), {})\n", encoding="utf-8")
    suite = make_suite(f"torchbench:{path}", [problem()], DeviceKind.CPU)
    assert suite.is_timed
    assert [call.timed for each in suite.shares[0].calls.values() for call in each] == [True]


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [
        ([("aten.cos.default",)], ("op_name",), "has no column args"),
        ([("aten.cos.default", "((T([4]", True, [], 1, False)], COLUMNS, "row 1: args: the call's character"),
    ],
)
def test_what_is_no_such_file_is_told(tmp_path: Path, rows: Any, columns: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_suite(written(tmp_path / "t.parquet", rows, columns), [problem()], DeviceKind.CPU)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        read_torchbench(tmp_path / "t.parquet", everything=False)
    with pytest.raises(UsageError, match="there is no suite"):
        check_name("torchbench:")


def test_speed_is_plain_and_by_count_and_launches_stand_apart(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    (name,) = [name for name, calls in suite.shares[0].calls.items() if calls]
    timing = Timing(100.0, 50.0, 2.0, 1.9, 2.1, "window", launch_bound=False, queued=True)
    cases = []
    for number, call in enumerate(suite.shares[0].calls[name]):
        ratio = {60: 8.0, 1: 0.5}.get(call.count, 1.0)
        timed = replace(timing, library_us=80.0, candidate_us=80.0 / ratio, ratio=ratio) if call.timed else None
        phase = "bench" if call.timed else "check"
        cases.append(CaseResult(f"{phase}-{number}", name, phase, "float32", {"call": call.call}, Outcome.PASSED,
                                timing=timed))  # fmt: skip
    found = replace(result("aten/cos"), cases=tuple(cases), interpreted=False)
    (row,) = suite_rows(suite, [found])
    assert (row.correct, row.wrong, row.not_run, row.timed) == (9, 0, 0, 6)
    assert row.plain == pytest.approx(8 ** (1 / 4))
    assert row.weighted == pytest.approx((30 + 40 + 50 + 60) / (30 + 40 + 50 + 60 / 8))
    assert row.overhead == pytest.approx(0.5)
    shown = Console(file=io.StringIO(), width=80)
    shown.print(suite_table(suite, [row]))
    assert "1.68x" in shown.file.getvalue()  # type: ignore[attr-defined]
    told = list(suite_lines(suite, [row]))
    assert "  1 not included in the benchmark by its data set: made by hand" in told
