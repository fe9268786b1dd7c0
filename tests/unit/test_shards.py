"""``kgbench run --shard`` and ``kgbench merge``: every unit of work once, and one run of it all."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli.main import main
from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.evaluation.shard import Shard
from kgbench.harness.machine.settings import Job
from kgbench.harness.session import session as session_module
from kgbench.reports.model import report_of
from kgbench.store.reader import StoredRun, read_run
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FakeSession

IDS = ["aten/mm", "aten/softmax", "aten/t", "cublas/cublasSdot_v2", "vllm/rms_norm"]


def passed(job: Job) -> Result:
    return replace(
        result(job.problem_id, timing(0.83)), model=job.model, sample=job.sample, problem_sha256=job.problem.sha256
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in; sessions pass everything."""
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setattr(FakeSession, "act", staticmethod(passed))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kernels(here: Path) -> None:
    """Two samples of each problem."""
    for name in IDS:
        for sample in range(2):
            path = here / "kernels" / f"{name}.{sample}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"def {name.partition('/')[2]}(*args): ...  # {sample}\n")


def command(*words: str) -> CliResult:
    return CliRunner().invoke(main, words)


def judged(here: Path, *words: str) -> StoredRun:
    """The newest run, made by ``kgbench run`` with these words."""
    before = set((here / "runs").glob("*"))
    done = command("run", "--device", "cpu", "--problems", ",".join(IDS), *words)
    assert done.exit_code == 0, done.output
    [made] = set((here / "runs").glob("*")) - before
    return read_run(made)


def parts(here: Path, count: int) -> list[StoredRun]:
    kernels(here)
    return [judged(here, "--model", "dir:kernels", "--shard", f"{number + 1}/{count}") for number in range(count)]


def merge(here: Path, *runs: StoredRun, words: tuple[str, ...] = ()) -> CliResult:
    return command("merge", *(str(run.path) for run in runs), "--out", str(here / "merged"), *words)


def merged(here: Path) -> StoredRun:
    [path] = (here / "merged").iterdir()
    return read_run(path)


def rewrite(run: StoredRun, **changes: Any) -> None:
    (run.path / "run.json").write_text(json.dumps({**run.info, **changes}))


@pytest.mark.parametrize(("units", "count"), [(10, 1), (10, 3), (10, 8), (3, 8), (0, 2)])
def test_shards_have_each_unit_once_and_differ_by_one_at_most(units: int, count: int) -> None:
    shards = [Shard(number + 1, count).of(range(units)) for number in range(count)]
    assert sorted(unit for shard in shards for unit in shard) == list(range(units))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    assert list(Shard(3, 8).of(range(20))) == [2, 10, 18]


@pytest.mark.parametrize("text", ["0/8", "9/8", "3", "3/0", "a/b", "-1/4", "1/2/3"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected NUMBER/COUNT"):
        Shard.parse(text)


def test_what_merges_is_what_one_run_would_have_been(here: Path) -> None:
    found = parts(here, 3)
    whole = judged(here, "--model", "dir:kernels")
    assert [len(part.results) for part in found] == [4, 3, 3]
    assert all("KGB640" in "".join(part.notes) for part in found)
    done = merge(here, *found)
    assert done.exit_code == 0, done.output
    run = merged(here)
    assert sorted(each.key for each in run.results) == sorted(each.key for each in whole.results)
    assert [row.values for row in report_of(run).rows] == [row.values for row in report_of(whole).rows]
    assert run.info["status"] == "finished"
    assert run.notes == ()
    assert [part["shard"] for part in run.info["parts"]] == ["1/3", "2/3", "3/3"]
    # Each result's seed is known still, and its kernel is there.
    seeds = {each["seed_sha256"]: each["seed"] for each in run.info["segments"]}
    assert all(seeds[each.seed] for each in run.results)
    files = [path.relative_to(run.path) for path in sorted(run.path.glob("candidates/*/*.py"))]
    assert files == [path.relative_to(whole.path) for path in sorted(whole.path.glob("candidates/*/*.py"))]


def test_a_missing_shard_is_named_and_judged_by_resume(here: Path) -> None:
    first, _, third = parts(here, 3)
    done = merge(here, first, third)
    assert done.exit_code == 0, done.output
    assert "KGB641: shard 2/3 is missing" in done.output
    run = merged(here)
    assert run.info["status"] == "partial"
    resumed = command("run", "--resume", str(run.path), "--device", "cpu")
    assert resumed.exit_code == 0, resumed.output
    assert len({each.key for each in merged(here).results}) == len(merged(here).results) == 2 * len(IDS)
    assert merged(here).info["status"] == "finished"


def test_resume_of_a_shard_stays_within_it(here: Path) -> None:
    kernels(here)

    def stop_at_the_second(job: Job) -> Result | None:
        if job.problem_id != IDS[0]:
            raise KeyboardInterrupt
        return passed(job)

    FakeSession.act = staticmethod(stop_at_the_second)
    words = ("--problems", ",".join(IDS), "--model", "dir:kernels", "--device", "cpu")
    assert command("run", *words, "--shard", "1/3").exit_code == 130
    FakeSession.act = staticmethod(passed)
    assert "KGB418" in command("run", "--resume", "last", "--shard", "2/3").output
    assert command("run", "--resume", "last", "--device", "cpu").exit_code == 0
    [path] = (here / "runs").iterdir()
    assert len(read_run(path).results) == 4


def test_parts_of_different_runs_are_refused_with_what_differs(here: Path) -> None:
    first, second = parts(here, 2)
    changes = {
        "problem set: 5 problems": {"problem_set_sha256": "0" * 64},
        "--model: dir:kernels and other": {"model": "other"},
        "--policy: strict and off": {"asked": {**second.info["asked"], "policy": "off"}},
        "device: CPU and H200": {"device": {**second.info["device"], "name": "H200"}},
        "device: cpu and cuda": {"device": {**second.info["device"], "kind": "cuda"}},
        "--shard: a part of 2 and a part of 3": {"asked": {**second.info["asked"], "shard": "2/3"}},
        "clock: True and False": {"timed": False},
    }
    for words, changed in changes.items():
        rewrite(second, **changed)
        done = merge(here, first, second)
        assert done.exit_code == 2
        assert "KGB153" in done.output
        assert words in done.output
        assert not (here / "merged").exists()


def test_a_candidate_that_two_judged_is_named(here: Path) -> None:
    first, second = parts(here, 2)
    copy = here / "copy"
    shutil.copytree(first.path, copy)
    done = merge(here, first, second, read_run(copy))
    assert done.exit_code == 2
    where = first.path.relative_to(here)
    assert f"KGB154: {where} (shard 1/2) and copy (shard 1/2) both have a verdict on" in done.output
    assert not (here / "merged").exists()


def test_a_harness_error_gives_way_to_the_verdict_of_another_part(here: Path) -> None:
    first, second = parts(here, 2)
    stands = second.results[0]
    failed = result(stands.problem, outcome=Outcome.HARNESS_ERROR, detail=HarnessTrouble(Fault.LOST, "gone"))
    with (first.path / "results.jsonl").open("a") as file:
        file.write(json.dumps({**failed.to_json(), "model": stands.model, "sample": stands.sample}) + "\n")
    assert merge(here, first, second).exit_code == 0
    outcomes = {each.key: each.outcome for each in merged(here).results}
    assert set(outcomes.values()) == {Outcome.PASSED}
    assert len(merged(here).results) == 2 * len(IDS)


def test_a_shard_stands_on_no_leaderboard(here: Path) -> None:
    found = parts(here, 2)
    done = command("leaderboard", "runs")
    assert f"{found[0].path.relative_to(here)} is shard 1/2 of a run" in done.output
    assert "dir:kernels" not in done.stdout


@pytest.mark.parametrize("option", [("--fail",), ("--fail-under", "fast_0=1.0")])
def test_a_bound_is_for_the_whole_run(here: Path, option: tuple[str, ...]) -> None:
    kernels(here)
    done = command("run", "--model", "dir:kernels", "--shard", "1/2", *option)
    assert (done.exit_code, "KGB151" in done.output) == (2, True)
    found = parts(here, 2)
    assert merge(here, *found, words=option).exit_code == 0
