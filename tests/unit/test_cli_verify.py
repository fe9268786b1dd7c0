"""``kgbench verify``: winners are measured again, the run's own results stay as they are, the report shows both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbench.harness.session.session as session_module
from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import Result
from kgbench.harness.session.session import Job
from kgbench.problem.registry import load_problem
from kgbench.store import verification
from kgbench.store.encoding import sha256
from kgbench.store.reader import read_results
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FakeSession

TEXT = "def t(self): ...\n"
NAMES = ("aten/softmax", "aten/mm", "aten/add")
RATIOS = {"aten/softmax": 1.5, "aten/mm": 2.0, "aten/add": 0.9}


def winning_run(out: Path, *, text: str | None = TEXT, device: dict[str, Any] | None = None) -> Path:
    """A finished run of three problems, two of them faster than the library."""
    hashes = {name: load_problem(problems_dir() / f"{name}.yaml").sha256 for name in NAMES}
    problems = [{"id": name, "kind": "compute", "sha256": hashes[name]} for name in NAMES]
    info = {"problems": problems, "asked": {}, "device": {"kind": "cpu", "name": "fake", **(device or {})}}
    store = RunStore.create(out, "20260102T030405Z-ab12cd", info, seed="s")
    for name, ratio in RATIOS.items():
        if text is not None:
            store.save_candidate(name, 0, text)
        store.append(result(name, timing(ratio), problem_sha256=hashes[name], candidate_sha256=sha256(TEXT)))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    return store.path


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setattr("kgbench.cli.verify.check_machine", lambda: None)
    return winning_run(tmp_path / "runs")


def again(monkeypatch: pytest.MonkeyPatch, **found: float | Outcome) -> list[Job]:
    """What measuring again finds, by the operator's name; the jobs that were asked for."""
    jobs: list[Job] = []

    def act(job: Job) -> Result:
        jobs.append(job)
        what = found[job.problem_id.partition("/")[2]]
        made = result(job.problem_id, candidate_sha256=sha256(job.source or ""), outcome=Outcome.WRONG_VALUE)
        if isinstance(what, float):
            made = replace(result(job.problem_id, timing(what)), candidate_sha256=sha256(job.source or ""))
        return made

    monkeypatch.setattr(FakeSession, "act", staticmethod(act))
    return jobs


def verify(*more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["verify", "last", "--device", "cpu", *more])
    return done.exit_code, done.output


def test_winners_are_measured_again_and_the_run_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (run / "results.jsonl").read_bytes()
    jobs = again(monkeypatch, softmax=1.51, mm=1.9)
    code, output = verify()
    assert code == 0, output
    assert "2 of 2 winners are faster again" in output
    assert "aten/mm: was 2.00x [1.96, 2.04], now 1.90x [1.86, 1.94]" in output
    assert "aten/softmax: was" not in output
    assert {job.problem_id: job.source for job in jobs} == {"aten/mm": TEXT, "aten/softmax": TEXT}
    assert (run / "results.jsonl").read_bytes() == before
    shown = CliRunner().invoke(main, ["report", "last"]).output
    assert "2 of 2 winners are faster again (2 in the run)" in shown
    data = json.loads(CliRunner().invoke(main, ["report", "last", "--json"]).stdout)
    assert data["verification"]["outside_interval"] == ["aten/mm"]


def test_what_does_not_hold_is_said_and_ends_with_1(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(monkeypatch, softmax=1.0, mm=Outcome.WRONG_VALUE)
    code, output = verify()
    assert code == 1
    assert "0 of 2 winners are faster again" in output
    assert "aten/mm: was correct, now wrong value" in output
    assert "now 1.00x [0.98, 1.02], not faster" in output


def test_only_the_fastest_with_top(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = again(monkeypatch, mm=2.0)
    assert verify("--top", "1")[0] == 0
    assert [job.problem_id for job in jobs] == ["aten/mm"]


def test_what_was_measured_before_a_kill_is_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(monkeypatch, softmax=1.5, mm=2.0)
    verify()
    with (run / verification.FILE).open("ab") as file:
        file.write(b'{"problem": "aten/s')
    assert "the last line is cut off" in CliRunner().invoke(main, ["report", "last"]).output
    verify()
    results, notes = read_results(run / verification.FILE)
    assert (len(results), notes) == (4, ())
    assert [each.times for each in verification.verified(read_results(run / "results.jsonl")[0], results)] == [2, 2]


def test_each_verification_has_a_seed_of_its_own(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(monkeypatch, softmax=1.5, mm=2.0)
    verify()
    verify()
    seeds = {each.seed for each in read_results(run / verification.FILE)[0]}
    assert len(seeds) == 2
    assert sha256("s") not in seeds


def test_another_text_than_the_one_judged_is_left_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again(monkeypatch, mm=2.0)
    (run / "candidates/aten/softmax.0.py").write_text("def t(self): return 1\n")
    code, output = verify()
    assert code == 0
    assert "aten/softmax is left out: the stored text is not the one that was judged" in output
    assert "1 of 1 winners" in output
