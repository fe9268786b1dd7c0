"""Result files of KernelBench, BackendBench and KernelGenBench: their fields, and figures that come out as ours."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.cli.report_output import FOLDERS
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.reports.export import backendbench, folder, kernelbench, kernelgenbench
from kgbench.reports.model import Report, report_of
from kgbench.store.reader import read_run
from tests.unit.made_results import LIBRARY, bench, result, timing
from tests.unit.test_export_tidy import stored

CALL = "((T([3], f32),), {})"


def report(tmp_path: Path) -> Report:
    """aten/mm: wrong, then right; aten/t: right of another kind; x/y: nothing; a correct one without a library."""
    check = CaseResult("check-1", "Tensor", "check", "float32", {"call": CALL}, Outcome.PASSED)
    wrong = replace(check, outcome=Outcome.WRONG_VALUE, reason="got 1, wanted 2")
    times = tuple(
        replace(bench(replace(timing(each), candidate_us=100 / each)), overload="Tensor") for each in (2.0, 0.5, 4.0)
    )
    fast = Result("aten/mm", "m", 1, Outcome.PASSED, cases=(check, *times), library=LIBRARY)
    problems = [{"id": "aten/mm", "kind": "compute", "overloads": ["Tensor"]}]
    problems += [{"id": "aten/t", "kind": "view", "overloads": ["default"]}, {"id": "vllm/y", "kind": "compute"}]
    run = stored(
        tmp_path,
        Result("aten/mm", "m", 0, Outcome.WRONG_VALUE, cases=(wrong, check)),
        fast,
        result("aten/t"),
        Result("vllm/y", "m", 0, Outcome.REJECTED, reason="calls torch.mm"),
        problems=problems,
        asked={"policy": "strict"},
    )
    (run / "candidates" / "aten").mkdir()
    (run / "candidates" / "aten" / "mm.1.py").write_text("def mm(): ...\n")
    return report_of(read_run(run))


def read(text: str) -> Any:
    def no(word: str) -> None:
        raise AssertionError(f"not strict JSON: {word}")

    return json.loads(text, parse_constant=no)


def test_kernelbench_fields_and_quotient(tmp_path: Path) -> None:
    found = kernelbench.files(report(tmp_path))
    results = read(found["eval_results.json"])
    assert list(results) == ["1", "2"], "of kind compute, by number as text"
    fields = {"sample_id", "compiled", "correctness", "metadata", "runtime", "runtime_stats"}
    assert all(set(entry) == fields for entries in results.values() for entry in entries)
    verdicts = [(e["sample_id"], e["compiled"], e["correctness"]) for e in results["1"]]
    assert verdicts == [(0, True, False), (1, True, True)]
    assert [(e["sample_id"], e["compiled"], e["correctness"], e["runtime"]) for e in results["2"]] == [
        (0, False, False, -1.0),
        (1, False, False, -1.0),
    ], "a sample without a result counts as not right"
    baseline = read(found["baseline_time_kgbench.json"])["level1"]
    assert list(baseline) == ["1_aten_mm.py", "2_vllm_y.py"]
    fields = {"mean", "std", "min", "max", "num_trials", "hardware", "device"}
    assert all(set(entry) == fields for entry in baseline.values())
    assert baseline["1_aten_mm.py"]["mean"] == pytest.approx(0.1), "milliseconds"
    quotient = baseline["1_aten_mm.py"]["mean"] / results["1"][1]["runtime"]
    assert quotient == pytest.approx((2.0 * 0.5 * 4.0) ** (1 / 3))
    at_k = read(found["pass_at_k_results.json"])
    assert at_k["averages"] == {"avg_pass@1": 0.25, "avg_pass@2": 0.5}
    assert at_k["metadata"]["total_evaluated_samples"] == 4
    assert at_k["problems"]["1"] == {"total_samples": 2, "correct_samples": 1, "pass@1": 0.5, "pass@2": 1.0}
    assert "KernelBench/level1/2_vllm_y.py" in found


def test_backendbench_tests_and_operators(tmp_path: Path) -> None:
    found = backendbench.files(report(tmp_path))
    tests = read(found["full_results.json"])
    correctness = {
        "op_name", "args", "is_correct", "error_msg", "error_type", "traceback", "max_abs_error", "max_rel_error",
        "test_type",
    }  # fmt: skip
    performance = {
        "op_name", "args", "speedup", "benchmark_time_ms", "reference_time_ms", "error_msg", "successfully_ran",
        "test_type",
    }  # fmt: skip
    for test in tests:
        assert set(test) == (correctness if test["test_type"] == "correctness" else performance)
    assert tests == sorted(tests, key=lambda test: (test["op_name"], test["args"]))
    assert {test["op_name"] for test in tests} == {"mm.Tensor", "t.default", "y"}
    assert [test["args"] for test in tests if test["op_name"] == "mm.Tensor"] == [CALL, CALL], "its first sample"
    failed = [(test["op_name"], test["error_type"]) for test in read(found["failed_tests.json"])]
    assert failed == [("mm.Tensor", "wrong value"), ("y", "rejected")]
    operators = {row["operator"]: row for row in csv.DictReader(io.StringIO(found["operator_summary.csv"]))}
    assert operators["mm.Tensor"]["correctness_rate"] == "0.5"
    assert operators["y"]["correctness_rate"] == "0.0"
    assert operators["mm.Tensor"]["max_absolute_error"] == ""


def test_backendbench_times(tmp_path: Path) -> None:
    whole = report(tmp_path)
    only = replace(whole, attempts=tuple(each for each in whole.attempts if each.sample == 1))
    found = backendbench.files(only)
    times = [test for test in read(found["full_results.json"]) if test["test_type"] == "performance"]
    assert [(t["speedup"], t["benchmark_time_ms"], t["reference_time_ms"]) for t in times] == [
        (2.0, 0.05, 0.1),
        (0.5, 0.2, 0.1),
        (4.0, 0.025, 0.1),
    ]
    operators = {row["operator"]: row for row in csv.DictReader(io.StringIO(found["operator_summary.csv"]))}
    assert float(operators["mm.Tensor"]["geomean_speedup"]) == pytest.approx(4.0 ** (1 / 3))


def test_kernelgenbench_rounds_and_speedups(tmp_path: Path) -> None:
    found = kernelgenbench.files(report(tmp_path))
    first, second = (read(found[f"verification/log_{number}/result.json"]) for number in range(2))
    fields = {"op_name", "success", "traceback", "params", "speedup", "info", "code", "test_func"}
    assert all(set(entry) == fields for entry in (*first, *second))
    assert {entry["op_name"]: entry["success"] for entry in first} == {
        "aten::mm": False,
        "aten::t": True,
        "vllm13::y": False,
    }
    (mm,) = second
    assert (mm["op_name"], mm["success"], mm["code"]) == ("aten::mm", True, "def mm(): ...\n")
    assert [entry["speedup"] for entry in mm["speedup"]] == [2.0, 0.5, 4.0]
    assert {entry["ref_time"] for entry in mm["speedup"]} == {0.1}
    assert read(found["verification/log_0/summary.json"]) == {"total": 3, "passed": 1, "failed": 2}
    at_k = read(found["pass_at_k_results.json"])
    assert at_k["passed_operators"] == ["aten::mm", "aten::t"]
    assert [entry["total_passed"] for entry in at_k["rounds_summary"]] == [1, 2]
    assert at_k["operator_details"]["aten::mm"]["first_pass_round"] == 1
    assert read(found["pass_at_k_results_antihack.json"])["hacked_operators"] == ["vllm13::y"]


def test_kernelgenbench_knows_no_attempt_behind_a_right_one(tmp_path: Path) -> None:
    right = result("aten/mm", timing(2.0))
    later = replace(result("aten/mm", outcome=Outcome.TIMEOUT), sample=1)
    run = stored(tmp_path, right, later, problems=[{"id": "aten/mm", "kind": "compute"}])
    found = kernelgenbench.files(report_of(read_run(run)))
    assert [name for name in found if name.endswith("result.json")] == ["verification/log_0/result.json"]


def test_what_nobody_looked_for_is_not_called_clean(tmp_path: Path) -> None:
    found = report(tmp_path)
    unseen = replace(found, info={**found.info, "asked": {"policy": "off"}})
    assert "pass_at_k_results_antihack.json" not in kernelgenbench.files(unseen)


@pytest.mark.parametrize("module", [kernelbench, backendbench, kernelgenbench])
def test_numbers_without_end_are_null(tmp_path: Path, module: Any) -> None:
    endless = result("aten/mm", replace(timing(2.0), candidate_us=math.inf))
    run = stored(tmp_path, endless, problems=[{"id": "aten/mm", "kind": "compute"}], samples=1)
    for name, text in module.files(report_of(read_run(run))).items():
        if name.endswith(".json"):
            read(text)


@pytest.mark.parametrize("form", ["kernelbench", "backendbench", "kgb"])
def test_an_empty_run_gives_files_all_the_same(tmp_path: Path, form: str) -> None:
    done = CliRunner().invoke(main, ["report", str(stored(tmp_path, problems=[])), "--format", form])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) in ({}, [])


@pytest.mark.parametrize("form", ["kernelbench", "backendbench", "kgb", "csv", "json", "junit", "table"])
def test_to_writes_what_stdout_would_have(tmp_path: Path, form: str) -> None:
    run = Path(report(tmp_path).where)
    printed = CliRunner().invoke(main, ["report", str(run), "--format", form]).stdout_bytes
    done = CliRunner().invoke(main, ["report", str(run), "--format", form, "--to", str(tmp_path / "to")])
    assert (done.exit_code, done.output) == (0, "")
    to = tmp_path / "to"
    assert to.is_dir() == (form in FOLDERS)
    files = {path: path.read_bytes() for path in (to.rglob("*") if to.is_dir() else [to]) if path.is_file()}
    assert printed in files.values()
    assert len(files) > 1 or form not in FOLDERS


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    run = report(tmp_path).where
    done = CliRunner().invoke(main, ["report", run, "--format", "csv", "--to", str(tmp_path / "none" / "x.csv")])
    assert done.exit_code == 2
    assert f"KGB187: {tmp_path / 'none' / 'x.csv'}: cannot be written: No such file or directory" in done.output


def test_files_are_written_into_a_folder(tmp_path: Path) -> None:
    folder.write({"a.json": "1\n", "b/c.txt": "2\r\n"}, tmp_path / "new")
    assert (tmp_path / "new" / "b" / "c.txt").read_bytes() == b"2\r\n"
