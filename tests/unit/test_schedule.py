"""The longest problem is judged first, by what it took before."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import Result
from kgbench.evaluation.schedule import known_durations, longest_first, remember_durations
from kgbench.evaluation.usual_durations import USUAL_DURATIONS
from kgbench.problem.registry import Registry, load_problem
from tests.unit.made_results import result

GPU = {"kind": "cuda", "name": "NVIDIA H200"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def took(problem: str, seconds: float) -> Result:
    return dataclasses.replace(result(problem), seconds={"total": seconds, "waited": 100.0})


def test_unknown_ones_come_between_long_and_short_ones_in_the_order_of_the_run() -> None:
    names = ["aten/add", "aten/mm", "aten/neg", "aten/sort", "aten/sum"]
    problems = [load_problem(problems_dir() / f"{name}.yaml") for name in names]
    known = {"aten/add": 1.0, "aten/sort": 9.0, "aten/relu": 3.0}
    assert [each.id for each in longest_first(problems, known)] == [
        "aten/sort", "aten/mm", "aten/neg", "aten/sum", "aten/add",
    ]  # fmt: skip
    assert longest_first(problems, {}) == problems


def test_durations_are_kept_per_device_and_the_longest_candidate_counts() -> None:
    remember_durations(GPU, [took("aten/mm", 2.0), took("aten/mm", 7.0), took("aten/mm", 3.0), took("aten/add", 1.0)])
    remember_durations(GPU, [took("aten/add", 0.5), result("aten/sum")])
    known = known_durations(GPU)
    assert (known["aten/mm"], known["aten/add"]) == (7.0, 0.5)
    assert known["aten/sum"] == USUAL_DURATIONS["aten"]["sum"], "not judged here yet"
    assert known_durations({"kind": "cuda", "name": "another"})["aten/add"] == USUAL_DURATIONS["aten"]["add"]
    assert known_durations({"kind": "cpu", "name": "another"}) == {}


@pytest.mark.parametrize("device", [GPU, {"kind": "cpu", "name": "another"}], ids=["gpu", "cpu"])
def test_a_candidate_that_failed_early_does_not_make_its_problem_short(device: dict[str, str]) -> None:
    remember_durations(device, [took("aten/mm", 30.0)])
    failed = dataclasses.replace(took("aten/mm", 1.0), outcome=Outcome.WRONG_VALUE)
    remember_durations(device, [failed])
    assert known_durations(device)["aten/mm"] == 30.0
    remember_durations(device, [dataclasses.replace(failed, seconds={"total": 40.0})])
    assert known_durations(device)["aten/mm"] == 40.0
    remember_durations(device, [took("aten/mm", 20.0), failed])
    assert known_durations(device)["aten/mm"] == 40.0, "of two of one run the longer one counts"
    remember_durations(device, [took("aten/mm", 20.0)])
    assert known_durations(device)["aten/mm"] == 20.0


def test_the_usual_durations_are_of_all_shipped_problems() -> None:
    ids = {f"{source}/{name}" for source, each in USUAL_DURATIONS.items() for name in each}
    assert ids == set(Registry().ids())
