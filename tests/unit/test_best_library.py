"""Beside the fastest library: whose times count, the arithmetic by hand, and which tables have it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.reports.best_library import packages_of, with_best_libraries
from kgbench.scores.rows import Row, rows
from kgbench.scores.samples import Selected
from kgbench.scores.speedups import Faster, against_best
from kgbench.store.reader import StoredRun
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing

GPU: dict[str, Any] = {"kind": "cuda", "name": "NVIDIA H200", "devices": [{"name": "NVIDIA H200"}]}
NAMES = ("aten/a", "aten/b", "aten/c")


def of(problem: str, ratios: Mapping[str, float], **more: Any) -> Result:
    """Timed cases by id, each with an interval of 1 % to both sides."""
    cases = tuple(
        CaseResult(name, "", "bench", "float32", {}, Outcome.PASSED,
                   timing=replace(timing(ratio), low=ratio / 1.01, high=ratio * 1.01, launch_bound=name == "short"))
        for name, ratio in ratios.items()
    )  # fmt: skip
    return result(problem, cases=cases, problem_sha256=f"of {problem}", candidate_sha256="text", **more)


def run_of(*results: Result, device: Mapping[str, Any] = GPU, package: str = "fast 1.0") -> StoredRun:
    problems = [{"id": name, "kind": "compute", "sha256": f"of {name}"} for name in NAMES]
    info = {"id": package or "kernels", "device": device, "problems": problems}
    return StoredRun(
        Path("nowhere"), info, tuple(replace(each, adapted=package, model=package or "m") for each in results), ()
    )


def row_of(kernels: StoredRun, *libraries: StoredRun) -> Row:
    selected = with_best_libraries([Selected(name, "compute") for name in NAMES], kernels.info, libraries)
    (row,) = rows(selected, kernels.results, seed="run")
    return row


KERNELS = run_of(of("aten/a", {"x": 2.0, "y": 2.0}), of("aten/b", {"x": 1.5}), of("aten/c", {"x": 1.2}), package="")


def test_the_fastest_counts_in_each_timed_case() -> None:
    kernel = of("aten/a", {"x": 2.0, "y": 3.0, "short": 9.0})
    faster = {"x": Faster("fast", 4.0, 4.0 / 1.02, 4.0 * 1.02)}
    found = against_best(kernel, faster)
    assert found is not None
    assert found.point == pytest.approx(math.sqrt(2.0 / 4.0 * 3.0))
    both = math.hypot(math.log(1.01), math.log(1.02))
    assert found.low == pytest.approx(math.sqrt(2.0 / 4.0 * math.exp(-both) * 3.0 / 1.01))
    assert found.high == pytest.approx(math.sqrt(2.0 / 4.0 * math.exp(both) * 3.0 * 1.01))
    assert found.count == 2, "the launch-bound one is left out as in the speedup"
    assert against_best(replace(kernel, outcome=Outcome.WRONG_VALUE), faster) is None


def test_shares_are_over_all_problems_and_equal_fast_1_where_no_package_is_faster() -> None:
    package = run_of(of("aten/a", {"x": 4.0, "y": 1.0}), of("aten/b", {"x": 0.7}))
    row = row_of(KERNELS, package)
    assert (row.values["fast_1"], row.values["fast_1 (best library)"]) == (1.0, 2 / 3), "aten/a is sqrt(1/2 * 2) = 1"
    speedups = [1.0, 1.5, 1.2]
    assert row.values["speedup (best library)"] == pytest.approx(math.prod(speedups) ** (1 / 3))
    assert row.intervals["fast_1 (best library)"][1] <= 1.0
    two = row_of(KERNELS, package, run_of(of("aten/b", {"x": 3.0}), package="other 2"))
    assert two.values["fast_1 (best library)"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("library", "why"),
    [
        (run_of(of("aten/a", {"x": 9.0}), package=""), "a model's kernels"),
        (run_of(of("aten/a", {"x": 9.0}), device={**GPU, "name": "NVIDIA H100", "devices": []}), "another GPU"),
        (run_of(of("aten/a", {"x": 9.0}), device={"kind": "cpu", "name": "NVIDIA H200"}), "a CPU"),
    ],
)
def test_nothing_is_said_beside_other_runs(library: StoredRun, why: str) -> None:
    assert not {name for name in row_of(KERNELS, library).values if "best library" in name}, why


@pytest.mark.parametrize(
    "changed",
    [
        {"outcome": Outcome.REJECTED},
        {"problem_sha256": "another file"},
        {"problem_sha256": ""},
        {"interpreted": True},
    ],
)
def test_what_is_rejected_or_of_another_file_is_not_the_best_library(changed: dict[str, Any]) -> None:
    fast = of("aten/a", {"x": 9.0, "y": 9.0})
    for each, share in ((replace(fast, **changed), 1.0), (fast, 2 / 3)):
        assert row_of(KERNELS, run_of(each)).values["fast_1 (best library)"] == pytest.approx(share)


@pytest.mark.parametrize("outcome", [Outcome.NOT_OFFERED, Outcome.WRONG_VALUE])
def test_timed_calls_of_a_package_count_although_others_fail_or_are_not_offered(outcome: Outcome) -> None:
    some = replace(of("aten/b", {"x": 9.0}), outcome=outcome)
    assert row_of(KERNELS, run_of(some)).values["fast_1 (best library)"] == pytest.approx(2 / 3)
    assert packages_of(run_of(some)) == ("fast 1.0",)


def test_report_compares_with_runs_of_packages_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for run in (KERNELS, run_of(of("aten/a", {"x": 4.0, "y": 4.0}))):
        store = RunStore.create(tmp_path / "runs", run.info["id"].replace(" ", "-"), run.info, seed="s")
        for each in run.results:
            store.append(each)
        store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    done = CliRunner().invoke(main, ["report", "runs/kernels", "--best-library", "runs/fast-1.0"])
    assert done.exit_code == 0, done.output
    assert "beside the best library: fast_1 66.7 %, speedup " in done.output
    as_csv = CliRunner().invoke(
        main, ["report", "runs/kernels", "--best-library", "runs/fast-1.0", "--format", "csv", "--by", "source"]
    )
    head, line = as_csv.output.splitlines()[:2]
    assert dict(zip(head.split(","), line.split(","), strict=True))["fast_1_best_library"].startswith("0.66")
    assert "best library" not in CliRunner().invoke(main, ["report", "runs/kernels"]).output
    wrong = CliRunner().invoke(main, ["report", "runs/fast-1.0", "--best-library", "runs/kernels"])
    assert (wrong.exit_code, "KGB190" in wrong.output, "runs/kernels: no run of" in wrong.output) == (2, True, True)
    html = CliRunner().invoke(main, ["report", "runs/kernels", "--best-library", "runs/fast-1.0", "--html", "x.html"])
    assert (html.exit_code, "leave --best-library out" in html.output) == (2, True)
