"""Speed of light: least times by hand, which cases stand apart, sol_50 and sol_80, and where they are printed."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Result, Timing
from kgbench.problem.cases import bench_cases
from kgbench.problem.registry import load_problem
from kgbench.reports.footnotes import closing_lines
from kgbench.reports.formats import print_markdown
from kgbench.reports.model import report_of
from kgbench.scores.light import least_times, with_least_times
from kgbench.scores.per_problem import roofline_of
from kgbench.scores.rows import Row, rows
from kgbench.scores.samples import Selected
from kgbench.store.reader import read_run
from tests.unit.made_results import result, timing
from tests.unit.test_comparison import stored

PEAKS: dict[str, Any] = {"gb_per_s": 4000, "gflop_per_s": {"float32": 50_000, "float16": 800_000, "bfloat16": 800_000}}
GPU = {"kind": "cuda", "name": "NVIDIA H200", "memory_gb": 140.0, "peaks": PEAKS}
MM = load_problem(problems_dir() / "aten/mm.yaml")
LEAST = {
    "bench-gpu140-1-float32": 2 * 2048**3 / 50e6,  # µs: operations at 50 TFLOP/s; its bytes take 12.6 µs
    "bench-gpu140-2-float16": 2 * 2048**3 / 800e6,
    "bench-gpu140-3-bfloat16": 2 * 8192 * 4096 * 8192 / 800e6,
    "bench-gpu140-4-float16": 2 * (16 * 256 + 256 * 16 + 16 * 16) / 4e6,  # 4 ns: bytes at 4 TB/s
    "bench-gpu140-5-bfloat16": 2 * 4096 * 4096 * 14336 / 800e6,
}
EMPTY_US = 6.0
MEASURED = {**GPU, "peaks": {**PEAKS, "empty_launch_us": EMPTY_US}}


def of(times: dict[str, float], problem: str = "aten/p", outcome: Outcome = Outcome.PASSED, **more: object) -> Result:
    """A result with a time in µs of each case."""
    cases = tuple(
        CaseResult(name, "", "bench", "float32", {}, Outcome.PASSED, timing=timed(us)) for name, us in times.items()
    )
    return result(problem, outcome=outcome, **{"cases": cases, **more})


def timed(us: float) -> Timing:
    return dataclasses.replace(timing(1.0), candidate_us=us)


def row_of(
    found: Sequence[Result],
    least_us: dict[str, dict[str, float]],
    device: object = MEASURED,
    **asked: object,
) -> Row:
    names = dict.fromkeys(each.problem for each in found)
    info = {"least_us": least_us, "device": device}
    selected = with_least_times([Selected(name, "compute") for name in names], info)
    (row,) = rows(selected, found, **asked)
    return row


def test_least_times_by_hand() -> None:
    found = least_times([MM], GPU)
    assert list(found) == ["aten/mm"]
    assert found["aten/mm"] == pytest.approx(LEAST)


def test_the_largest_bandwidth_and_the_arithmetic_that_the_file_names_count() -> None:
    scaled = load_problem(problems_dir() / "vllm/cutlass_scaled_mm.yaml")
    found = least_times([scaled], GPU)["vllm/cutlass_scaled_mm"]
    for overload in ("int8", "fp8"):
        assert found[f"{overload} bench-gpu140-4-bfloat16"] == pytest.approx(2 * 2048 * 14336 * 4096 / 1600e6)
        one_row = 4096 + 4096 * 4096 + 2 * 4096
        assert found[f"{overload} bench-gpu140-1-bfloat16"] == pytest.approx(one_row / 4e6)
        faster = {**GPU, "peaks": {**PEAKS, "read_gb_per_s": 3000, "write_gb_per_s": 5000}}
        times = least_times([scaled], faster)["vllm/cutlass_scaled_mm"]
        assert times[f"{overload} bench-gpu140-1-bfloat16"] == pytest.approx(one_row / 5e6)


def test_complex_products_have_a_peak_of_their_own() -> None:
    gemm = load_problem(problems_dir() / "cublas/cublasCgemm_v2.yaml")
    name, case = "cublas/cublasCgemm_v2", "bench-gpu140-2-complex64"
    assert least_times([gemm], GPU)[name][case] == pytest.approx(8 * 2048**3 / 50e6)
    measured = {**GPU, "peaks": {**PEAKS, "gflop_per_s": {**PEAKS["gflop_per_s"], "complex64": 54_000}}}
    assert least_times([gemm], measured)[name][case] == pytest.approx(8 * 2048**3 / 54e6)


def test_a_loose_bound_is_none() -> None:
    assert least_times([load_problem(problems_dir() / "aten/sort.yaml")], GPU) == {}


def test_what_is_drawn_several_times_counts_once_and_what_is_alone_32_bytes() -> None:
    rows = least_times([load_problem(problems_dir() / "vllm/shuffle_rows.yaml")], GPU)["vllm/shuffle_rows"]
    distinct = 8192 * (1 - (1 - 1 / 8192) ** 16384)
    assert rows["bench-gpu140-3-float16"] == pytest.approx((2 * 4096 * (distinct + 16384) + 4 * 16384) / 4e6)
    every = least_times([load_problem(problems_dir() / "cublas/cublasSscal_v2.yaml")], GPU)["cublas/cublasSscal_v2"]
    assert every["bench-gpu140-2-float32"] == pytest.approx(2 * 8 * 16777216 / 4e6), "every second element"


def test_no_bound_on_a_cpu_or_without_peaks_or_without_a_cost() -> None:
    assert least_times([MM], {**GPU, "kind": "cpu"}) == {}
    assert least_times([MM], {**GPU, "peaks": None}) == {}
    without = dataclasses.replace(MM, overloads=tuple(dataclasses.replace(o, cost=None) for o in MM.overloads))
    assert least_times([without], GPU) == {}


def test_at_the_least_time_the_roofline_share_is_one() -> None:
    (overload,) = (each for each in MM.overloads if each.required)
    cases = [
        CaseResult(case.id, case.overload, "bench", case.dtype, case.variables, Outcome.PASSED, timing=timed(us))
        for case in bench_cases(overload, "gpu140")
        if (us := LEAST.get(case.id))
    ]
    assert len(cases) == len(LEAST)
    assert roofline_of(result("aten/mm", cases=tuple(cases)), MM, PEAKS) == pytest.approx(1.0)


def test_shares_are_geometric_means_over_the_cases_that_are_longer_than_an_empty_launch() -> None:
    least = {"aten/p": {"a": 10.0, "b": 40.0, "launch": 5.9}}
    # 10/20 and 40/50: sqrt(0.5 * 0.8) = 0.632; the third, at 1 % of its bound, stands apart.
    row = row_of([of({"a": 20.0, "b": 50.0, "launch": 590.0})], least)
    assert (row.values["sol_50"], row.values["sol_80"], row.bounded) == (1.0, 0.0, 1)
    assert row_of([of({"a": 20.0, "b": 81.0, "launch": 5.9})], least).values["sol_50"] == 0.0  # sqrt(0.247) = 0.497
    assert row_of([of({"a": 12.0, "b": 48.0, "launch": 590.0})], least).values["sol_80"] == 1.0


def test_a_least_time_that_the_library_itself_is_below_is_left_out() -> None:
    info = {"least_us": {"aten/p": {"a": 109.0, "b": 111.0}, "aten/q": {"a": 111.0}}, "device": MEASURED}
    found = [of({"a": 300.0, "b": 300.0}), of({"a": 300.0}, problem="aten/q", outcome=Outcome.WRONG_VALUE)]
    assert {case.timing.library_us for each in found for case in each.cases if case.timing} == {100.0}
    selected = [Selected(name, "compute") for name in ("aten/p", "aten/q")]
    assert [each.least_us for each in with_least_times(selected, info, found)] == [{"a": 109.0}, {}]
    assert [len(each.least_us) for each in with_least_times(selected, info)] == [2, 1]


def test_the_librarys_own_share_is_of_the_problems_of_which_it_was_timed() -> None:
    times = {"fast": 85.0, "slow": 40.0, "wrong": 60.0, "none": 60.0}
    least = {f"aten/{name}": {"a": us} for name, us in times.items()}
    found = [
        of({"a": 300.0}, problem="aten/fast"),  # the library takes 100 µs
        of({"a": 50.0}, problem="aten/slow"),
        of({"a": 300.0}, problem="aten/wrong", outcome=Outcome.WRONG_VALUE),
        of({}, problem="aten/none"),
    ]
    values = row_of(found, least).values
    assert (values["sol_50 (library)"], values["sol_80 (library)"]) == (2 / 3, 1 / 3)
    assert values["sol_50"] == 1 / 4


def test_the_denominator_does_not_depend_on_what_was_handed_in() -> None:
    least = {f"aten/{name}": {"a": 10.0} for name in ("fast", "wrong", "untimed", "slow")} | {"aten/short": {"a": 6.0}}
    found = [
        of({"a": 11.0}, problem="aten/fast"),
        of({"a": 10.5}, problem="aten/wrong", outcome=Outcome.WRONG_VALUE),
        of({"b": 10.5}, problem="aten/untimed"),
        of({"a": 30.0}, problem="aten/slow"),
        of({"a": 6.1}, problem="aten/short"),
        of({"a": 6.1}, problem="aten/unknown"),
    ]
    row = row_of(found, least, seed="run")
    assert (row.problems, row.bounded) == (6, 4)
    assert (row.values["sol_50"], row.values["sol_80"]) == (0.25, 0.25)
    low, high = row.intervals["sol_50"]
    assert low == 0.0 < 0.25 < high < 1.0


def test_nothing_is_said_where_nothing_is_known() -> None:
    found = [of({"a": 11.0})]
    assert "sol_50" not in row_of(found, {}).values
    assert "sol_50" not in row_of([of({"a": 11.0}, interpreted=True)], {"aten/p": {"a": 10.0}}).values
    assert "sol_50" not in row_of(found, {"aten/p": {"a": 10.0}}, GPU).values, "a run of an earlier version"


def test_a_report_says_how_many_problems_stand_apart(tmp_path: Path) -> None:
    found = [of({"a": 11.0}, problem="aten/p"), of({"a": 11.0}, problem="aten/q"), of({"a": 11.0}, problem="aten/r")]
    least = {"aten/p": {"a": 10.0}, "aten/q": {"a": 2.0}, "aten/r": {"a": 8.0}}
    report = report_of(read_run(stored(tmp_path, "run", found, least_us=least, device=MEASURED)))
    lines = "\n".join(closing_lines(report))
    assert "speed of light: sol_50 100.0 %, sol_80 50.0 % of 2 problems; 1 apart, whose work" in lines
    assert "sol_80: correct, and at 80 % of the least time" in lines
    stream = io.StringIO()
    print_markdown(report, stream)
    assert "sol_80" in stream.getvalue().partition("\n")[0]
