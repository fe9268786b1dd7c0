"""``kgbench show RUN/ID``: everything about one verdict of a stored run, and the command that repeats it."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli import check as check_module
from kgbench.cli.main import main
from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Generation
from kgbench.harness.session import session as session_module
from kgbench.store.encoding import sha256
from kgbench.store.writer import RunStore
from tests.unit.made_results import bench, result, timing
from tests.unit.test_cli_check import FakeSession

RUN = "20260102T030405Z-ab12cd"
VERSION = sha256((problems_dir() / "aten" / "softmax.yaml").read_text(encoding="utf-8"))
RIGHT = dataclasses.replace(
    bench(timing(0.83)), id="bench-cpu-1-float32", variables={"size": [1000, 1000]}, seconds=2.5
)
WRONG = CaseResult(
    "check-5-float32", "", "check", "float32", {"a": 5, "b": 130}, Outcome.WRONG_VALUE, "wrong",
    Mismatch("return", (4, 0), "3", "-7", "1e-06", 0.2, (5, 130), "float32"), 0.25,
)  # fmt: skip
FACTS = {
    "device": "cpu", "memory_mb": {"worker": 301.2}, "seconds": {"import": 0.5, "total": 3.25},
    "problem_sha256": VERSION,
    "sandbox": {"level": "process", "network": "OPEN: unshare refused"},
}  # fmt: skip


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two runs; the newer one has two samples of softmax, a finished seed and a problem without a result."""
    problems = [{"id": name, "kind": "compute"} for name in ("aten/softmax", "aten/mm", "cublas/cublasSdot_v2")]
    RunStore.create(tmp_path, "20260101T000000Z-000000", {"problems": problems}, seed="s")
    asked = {"problem_dirs": [], "deadlines": ["compile=7"]}
    store = RunStore.create(tmp_path, RUN, {"problems": problems, "asked": asked, "device": {"name": "CPU"}}, seed="s")
    for sample, cases, outcome in ((0, (RIGHT,), Outcome.PASSED), (1, (RIGHT, WRONG), Outcome.WRONG_VALUE)):
        store.save_candidate("aten/softmax", sample, "def softmax_int(self, dim, dtype=None): ...\n")
        more = {**FACTS, "log_tail": "one\n\x1b[2Jtwo\n" if sample else ""}
        one = result("aten/softmax", cases=cases, outcome=outcome, **more)
        store.append(dataclasses.replace(one, model="dir:mine", sample=sample, seed=store.seed_sha256))
    store.append(result("aten/mm", outcome=Outcome.NO_CANDIDATE, reason="there is no file mm.py", library=None))
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="the seed")
    return tmp_path


def show(out: Path, *arguments: str) -> CliResult:
    return CliRunner().invoke(main, ["show", *arguments, "--out", str(out)])


@pytest.mark.parametrize("run", ["last", RUN, "20260102", "ab12"])
@pytest.mark.parametrize("problem", ["aten/softmax#1", "aten::softmax#1", "softmax#1"])
def test_everything_about_a_wrong_kernel(out: Path, run: str, problem: str) -> None:
    done = show(out, f"{run}/{problem}")
    assert done.exit_code == 0, done.output
    for words in (
        f"{RUN}  aten/softmax #1 by dir:mine: wrong value",
        "got 3, wanted -7, limit 1e-06; 20 % of the elements are wrong",
        "guess: perhaps the last row is left out",
        "cases (2)",
        "  bench-cpu-1-float32  passed         2.500 s  size=[1000, 1000]  library 100 µs, candidate 100 µs",
        "  check-5-float32      wrong value    0.250 s  a=5, b=130",
        "library: cuBLAS 13.1.0",
        "device: CPU",
        "sandbox: level process; network OPEN: unshare refused",
        "seconds: import 0.5, total 3.25",
        "peak memory in MB: worker 301",
        "samples: #0, #1",
        "  | �[2Jtwo",
    ):
        assert words in done.stdout
    assert "has changed since" not in done.stdout


def test_path_of_a_run_is_taken_too(out: Path) -> None:
    done = show(Path("elsewhere"), f"{out / RUN}/aten/softmax")
    assert f"{RUN}  aten/softmax #0 by dir:mine: passed" in done.stdout
    assert "verdict: passed 0.83x [0.81, 0.85]" in done.stdout
    assert "cpu-1-float32" in done.stdout


def test_the_command_repeats_it_with_the_same_inputs(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.loads(show(out, "last/softmax#1", "--json").stdout)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setattr(check_module, "check_machine", lambda: None)
    again = CliRunner().invoke(main, shlex.split(data["repeat"])[1:])
    assert again.exit_code == 0, again.output
    job, settings = FakeSession.jobs[0], FakeSession.settings
    assert (job.model, job.sample, job.problem_id) == ("dir:mine", 1, "aten/softmax")
    assert (settings.seed, settings.device, settings.deadlines.compile_s) == ("the seed", "cpu", 7)
    assert (data["outcome"], data["guess"]) == ("wrong value", "perhaps the last row is left out")
    assert [case["id"] for case in data["cases"]] == ["bench-cpu-1-float32", "check-5-float32"]


def test_changed_problem_file_is_said(out: Path) -> None:
    line = (out / RUN / "results.jsonl").read_text()
    (out / RUN / "results.jsonl").write_text(line.replace(VERSION, "0" * 64))
    assert "its file has changed since; this verdict is of version 000000000000" in show(out, "last/softmax").stdout


def test_nothing_repeats_a_candidate_that_was_not_there(out: Path) -> None:
    done = show(out, "last/aten/mm")
    assert "aten/mm #0 by m: no candidate" in done.stdout
    assert "again:" not in done.stdout
    assert json.loads(show(out, "last/aten/mm", "--json").stdout)["repeat"] is None


def test_seed_is_that_of_the_part_of_the_run_that_judged_it(out: Path) -> None:
    store = RunStore.reopen(out / RUN)
    store.begin({}, seed="another", started="", command=())
    one = result("aten/softmax", cases=(RIGHT,))
    store.append(dataclasses.replace(one, model="dir:mine", sample=0, seed=store.seed_sha256))
    store.finish("finished", finished="", seed="another")
    seeds = [json.loads(show(out, f"last/softmax#{n}", "--json").stdout)["repeat"].split("--seed ")[1] for n in (0, 1)]
    assert [words.partition(" --drawn-for")[0] for words in seeds] == ["another", "'the seed'"]


def test_run_that_is_still_going_keeps_its_seed(out: Path) -> None:
    info = json.loads((out / RUN / "run.json").read_text())
    info["segments"][0]["seed"] = None
    (out / RUN / "run.json").write_text(json.dumps(info))
    line = next(line for line in show(out, "last/softmax").stdout.splitlines() if line.startswith("again: "))
    assert line.endswith("aten/softmax --device cpu --deadline compile=7")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("last/aten/softmax#7", "aten/softmax has no sample 7 in 20260102T030405Z-ab12cd; there are #0, #1"),
        (
            "last/cublasSdot_v2",
            "cublas/cublasSdot_v2 was not evaluated in 20260102T030405Z-ab12cd: the run ended before",
        ),
        ("last/aten/softmx", "there is no problem 'aten/softmx'; closest: aten/softmax"),
        ("2026/aten/softmax", "'2026' means 2 runs"),
        ("2026/softmax", "'2026' means 2 runs"),
        ("nothing/aten/softmax", "there is no run 'nothing'"),
        ("aten/softmx", "there is no problem 'aten/softmx'"),
    ],
)
def test_what_is_not_there_ends_with_2(out: Path, what: str, words: str) -> None:
    done = show(out, what)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


class TestRounds:
    """One sample of softmax in three rounds, the second of which is correct, and one in one."""

    @pytest.fixture
    def rounds(self, out: Path) -> Path:
        by = Generation(
            "m-7", 1000, 24_000, None, 8200, 41.0, 0.018, "max tokens", checks=3, confined="agent confined: x"
        )
        store = RunStore.reopen(out / RUN)
        store.begin({}, seed="another", started="", command=())
        for number, (case, outcome) in enumerate(
            ((WRONG, Outcome.WRONG_VALUE), (RIGHT, Outcome.PASSED), (WRONG, Outcome.WRONG_VALUE))
        ):
            store.save_candidate(
                "aten/softmax", 2, f"# {number}\ndef softmax_int(self, dim, dtype=None): ...\n", number
            )
            one = result("aten/softmax", cases=(case,), outcome=outcome, **FACTS)
            one = dataclasses.replace(one, model="m", sample=2, round=number, generation=by)
            store.append(dataclasses.replace(one, seed=store.seed_sha256))
        store.finish("finished", finished="", seed="another")
        return out

    def test_a_sample_is_its_best_round(self, rounds: Path) -> None:
        text = show(rounds, "last/softmax#2").stdout
        assert f"{RUN}  aten/softmax #2.1 by m: passed" in text
        assert "samples and rounds: #0.0, #1.0, #2.0, #2.1, #2.2; `kgbench show RUN/aten/softmax#N.R` has each" in text

    @pytest.mark.parametrize(
        ("number", "head"), [(0, "#2 by m: wrong"), (1, "#2.1 by m: passed"), (2, "#2.2 by m: wrong")]
    )
    def test_each_round_can_be_shown(self, rounds: Path, number: int, head: str) -> None:
        assert f"{RUN}  aten/softmax {head}" in show(rounds, f"last/softmax#2.{number}").stdout

    def test_the_command_repeats_the_round(self, rounds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = json.loads(show(rounds, "last/softmax#2.2", "--json").stdout)
        assert Path(data["candidate"]).read_text().startswith("# 2\n")
        monkeypatch.setattr(session_module, "Session", FakeSession)
        monkeypatch.setattr(check_module, "check_machine", lambda: None)
        again = CliRunner().invoke(main, shlex.split(data["repeat"])[1:])
        assert again.exit_code == 0, again.output
        job = FakeSession.jobs[0]
        assert (job.model, job.sample, job.round) == ("m", 2, 2)

    def test_who_wrote_it_and_what_that_took(self, rounds: Path) -> None:
        lines = show(rounds, "last/softmax#2").stdout.splitlines()
        what = "25 k tokens in, 8.2 k out, 41 s, cost $0.018, 3 checks, stopped at: max tokens"
        assert f"written by: m-7; {what}" in lines
        assert "agent confined: x" in lines

    def test_round_that_is_not_there(self, rounds: Path) -> None:
        done = show(rounds, "last/softmax#2.7")
        assert done.exit_code == 2
        assert "aten/softmax has no round 7 of sample 2 in" in done.stderr
        assert "; there are #2.0, #2.1, #2.2" in done.stderr
