"""``kgbench reproduce``: stored candidates are judged again; what differs, what changed and what left its interval."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.harness.session import session as session_module
from kgbench.reports import reproduction
from kgbench.store.reader import read_results
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FakeSession
from tests.unit.test_cli_verify import again, winning_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setattr("kgbench.cli.reproduce.check_machine", lambda: None)
    return winning_run(tmp_path / "runs", device={"name": "CPU"})


def reproduce(*more: str) -> Any:
    from click.testing import CliRunner

    return CliRunner().invoke(main, ["reproduce", "last", "--device", "cpu", *more])


def test_all_candidates_are_judged_again_and_the_run_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run / "results.jsonl").read_bytes()
    jobs = again(monkeypatch, softmax=1.51, mm=2.01, add=0.91)
    done = reproduce()
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "machine: device, driver and versions are those of the run",
        "judged again: 3 of 3 candidates",
        "outcomes changed: 0 (aim 0)",
        "speedups outside their interval: 0 of 3, 0.0% (aim at most 5%)",
    ]
    assert {job.problem_id for job in jobs} == {"aten/mm", "aten/softmax", "aten/add"}
    assert (run / "results.jsonl").read_bytes() == before
    assert not (run / "verification.jsonl").exists()
    assert len(read_results(run / reproduction.FILE)[0]) == 3


def test_some_problems_alone_are_judged_again(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = again(monkeypatch, softmax=1.51, mm=2.01, add=0.91)
    done = reproduce("--problems", "aten/mm", "--problems", "aten/a*")
    assert done.exit_code == 0, done.output
    assert "judged again: 2 of 2 candidates\n" in done.stdout
    assert {job.problem_id for job in jobs} == {"aten/mm", "aten/add"}


def test_what_changed_is_named_and_ends_with_1(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(monkeypatch, softmax=1.51, mm=Outcome.WRONG_VALUE, add=0.7)
    done = reproduce()
    assert done.exit_code == 1
    assert "outcomes changed: 1 (aim 0)\n  aten/mm: was passed 2.00x [1.96, 2.04], now wrong value\n" in done.stdout
    assert "outside their interval: 1 of 2, 50.0%" in done.stdout
    assert "  aten/add: was 0.90x [0.88, 0.92], now 0.70x [0.69, 0.71]\n" in done.stdout


def test_what_differs_in_the_machine_comes_first(tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = json.loads((run / "run.json").read_text())
    info["device"] |= {"name": "NVIDIA H200", "versions": {"torch": "2.11"}}
    (run / "run.json").write_text(json.dumps(info))
    again(monkeypatch, softmax=1.5, mm=2.0, add=0.9)
    data = json.loads(reproduce("--json").stdout)
    assert data["machine_differs"] == [
        "the run was made with device NVIDIA H200, this is CPU",
        "the run was made with torch 2.11, here is 2.13",
    ]
    assert (data["judged_again"], data["speedups_compared"], data["holds"]) == (3, 3, True)
    first = reproduce().stdout.splitlines()[0]
    assert first.startswith("machine: the run was made with device NVIDIA H200, this is CPU; ")


def test_a_run_that_names_no_machine_is_not_said_to_be_of_this_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "device": None}))
    again(monkeypatch, softmax=1.5, mm=2.0, add=0.9)
    assert reproduce().stdout.startswith("machine: the run does not say on which device it was made\n")


@pytest.mark.parametrize(("outside", "holds"), [(1, True), (2, False)])
def test_one_in_twenty_may_leave_its_interval(outside: int, holds: bool) -> None:
    pairs = [
        (result(f"aten/p{number}", timing(1.0)), result(f"aten/p{number}", timing(2.0 if number < outside else 1.0)))
        for number in range(20)
    ]
    found = reproduction.reproduced([old for old, _ in pairs], [new for _, new in pairs])
    assert sum(each.outside for each in found) == outside
    assert reproduction.holds(found) is holds


def test_speed_in_the_interpreter_is_not_compared() -> None:
    old, new = (result("aten/mm", timing(ratio), interpreted=True) for ratio in (1.0, 9.0))
    (found,) = reproduction.reproduced([old], [new])
    assert found.speeds is None
    assert not found.outside


def test_another_text_under_the_same_name_is_not_the_same_candidate() -> None:
    old, new = (result("aten/mm", candidate_sha256=text) for text in ("1", "2"))
    assert reproduction.reproduced([old], [new]) == []
