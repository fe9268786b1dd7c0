"""``kgbench run --resume``: does what is missing, once, and nothing else. Sessions need no torch here."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli.main import main
from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.errors import MachineError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session import session as session_module
from kgbench.harness.session.retry import without_evaluation
from kgbench.models.provider import Candidate
from kgbench.models.providers.dir import FolderProvider
from kgbench.problem.model import Problem
from kgbench.store.encoding import sha256
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FakeSession, only_run

pytestmark = pytest.mark.torch
IDS = ["aten/add", "aten/mm", "aten/softmax", "aten/t"]
CHOSEN = ("--problems", ",".join(IDS))


class Session(FakeSession):
    jobs_seen: list[str]
    suspects_seen: list[str]
    settings_seen: list[Any]

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.settings_seen.append(settings)

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        answer = self.act(job) or dataclasses.replace(
            result(job.problem_id, timing(0.83)),
            model=job.model,
            sample=job.sample,
            problem_sha256=job.problem.sha256,
        )
        self.jobs_seen.append(job.problem_id)
        if job.suspected:
            self.suspects_seen.append(job.problem_id)
        return answer


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> type[Session]:
    fake = type("Fake", (Session,), {"jobs_seen": [], "suspects_seen": [], "settings_seen": []})
    monkeypatch.setattr(session_module, "Session", fake)
    return fake


@pytest.fixture
def out(tmp_path: Path, session: type[Session]) -> Path:
    """A folder with one run that was interrupted at its third problem of four."""
    session.act = staticmethod(interrupt_at("aten/softmax"))
    done = run(tmp_path / "runs", *CHOSEN, "--model", "baseline", "--device", "cpu")
    assert done.exit_code == 130
    session.act = staticmethod(lambda job: None)
    assert session.jobs_seen == IDS[:2]
    session.jobs_seen.clear()
    session.settings_seen.clear()
    return tmp_path / "runs"


def interrupt_at(problem: str) -> Callable[[Job], Result | None]:
    def act(job: Job) -> Result | None:
        if job.problem_id == problem:
            raise KeyboardInterrupt
        return None

    return act


def run(out: Path, *arguments: str) -> CliResult:
    return CliRunner().invoke(main, ["run", *arguments, "--out", str(out)])


def resume(out: Path, *arguments: str) -> CliResult:
    return run(out, "--resume", "last", *arguments)


def info(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((only_run(out) / "run.json").read_text(encoding="utf-8"))
    return found


def rewrite_lines(out: Path, change: Callable[[list[str]], list[str]]) -> None:
    path = only_run(out) / "results.jsonl"
    path.write_text("".join(change(path.read_text(encoding="utf-8").splitlines(keepends=True))), encoding="utf-8")


def test_only_what_is_missing_is_done_with_a_seed_of_its_own(out: Path, session: type[Session]) -> None:
    before = (only_run(out) / "results.jsonl").read_bytes()
    done = resume(out)
    assert done.exit_code == 0, done.output
    assert session.jobs_seen == IDS[2:]
    assert (only_run(out) / "results.jsonl").read_bytes().startswith(before)
    assert [each.problem for each in read_run(only_run(out)).results] == IDS
    segments = info(out)["segments"]
    assert [each["status"] for each in segments] == ["interrupted", "finished"]
    assert len({each["seed"] for each in segments}) == 2
    assert all(sha256(each["seed"]) == each["seed_sha256"] for each in segments)
    assert session.settings_seen[0].seed == segments[1]["seed"]
    assert [each.seed == segments[1]["seed_sha256"] for each in read_run(only_run(out)).results] == [0, 0, 1, 1]
    assert info(out)["status"] == "finished"
    assert "was interrupted" not in done.stdout
    assert "not evaluated" not in done.stdout
    assert "[1/2] aten/softmax passed" in done.stderr


def test_interrupted_run_prints_the_command_that_resumes_it(tmp_path: Path, session: type[Session]) -> None:
    session.act = staticmethod(interrupt_at("aten/mm"))
    done = run(tmp_path / "runs", *CHOSEN, "--model", "baseline", "--device", "cpu")
    command = done.stderr.splitlines()[-1].removeprefix("the rest: ")
    session.act = staticmethod(lambda job: None)
    again = CliRunner().invoke(main, shlex.split(command)[1:])
    assert again.exit_code == 0, again.output
    assert session.jobs_seen == IDS


def test_machine_and_deadlines_are_those_of_the_run(tmp_path: Path, session: type[Session]) -> None:
    session.act = staticmethod(interrupt_at("aten/mm"))
    chosen = (*CHOSEN, "--model", "baseline", "--device", "cpu", "--require-sandbox", "process")
    run(tmp_path, *chosen, "--deadline", "compile=7")
    session.act = staticmethod(lambda job: None)
    assert resume(tmp_path, "--jobs", "3").exit_code == 0
    first, second = session.settings_seen
    assert (first.deadlines, first.device, first.require_sandbox) == (second.deadlines, "cpu", "process")
    assert (second.device, second.require_sandbox, second.jobs) == ("cpu", "process", 3)


def test_machine_may_be_given_anew(out: Path, session: type[Session]) -> None:
    assert resume(out, "--require-sandbox", "isolated", "--device", "cpu").exit_code == 0
    assert session.settings_seen[0].require_sandbox == "isolated"


def test_finished_run_has_nothing_to_do_and_prints_its_table(out: Path, session: type[Session]) -> None:
    first = resume(out)
    session.settings_seen.clear()
    done = resume(out)
    assert (done.exit_code, done.stdout) == (0, first.stdout)
    assert "nothing to do: every candidate of this run has a verdict" in done.stderr
    assert session.settings_seen == []
    assert len(info(out)["segments"]) == 2


def test_run_that_was_killed_behind_its_last_result_is_finished_by_that(out: Path, session: type[Session]) -> None:
    resume(out)
    path = only_run(out) / "run.json"
    path.write_text(json.dumps({**info(out), "status": "running"}), encoding="utf-8")
    assert "was killed" not in resume(out).stdout
    assert info(out)["status"] == "finished"


def test_harness_error_is_done_again_and_the_newest_row_counts(out: Path, session: type[Session]) -> None:
    session.act = staticmethod(lambda job: Result(job.problem_id, job.model, 0, Outcome.HARNESS_ERROR, "broke"))
    assert resume(out).exit_code == 1
    session.act = staticmethod(lambda job: None)
    session.jobs_seen.clear()
    done = resume(out)
    assert (done.exit_code, session.jobs_seen) == (0, IDS[2:])
    assert len(read_run(only_run(out)).results) == 6
    assert "harness error" not in done.stdout


def test_line_that_was_cut_off_goes_and_its_candidate_is_done_again(out: Path, session: type[Session]) -> None:
    rewrite_lines(out, lambda lines: [lines[0], lines[1][:-30]])
    assert resume(out).exit_code == 0
    assert session.jobs_seen == IDS[1:]
    run = read_run(only_run(out))
    assert [each.problem for each in run.results] == IDS
    assert run.notes == ()


def test_killed_run_keeps_what_is_known_of_its_seed(out: Path, session: type[Session]) -> None:
    data = info(out)
    data["segments"][0] |= {"status": "running", "seed": None, "finished": None}
    (only_run(out) / "run.json").write_text(json.dumps({**data, "status": "running"}), encoding="utf-8")
    assert resume(out).exit_code == 0
    assert [(each["status"], bool(each["seed"])) for each in info(out)["segments"]] == [
        ("killed", False),
        ("finished", True),
    ]


def test_rows_of_an_older_problem_file_are_done_again_and_counted(tmp_path: Path, session: type[Session]) -> None:
    own = tmp_path / "own" / "mine" / "t.yaml"
    own.parent.mkdir(parents=True)
    # Elsewhere than in source aten the library has to be named.
    stated = 'baseline: {cuda: "aten:t", cpu: "aten:t"}\nalias: self\n'
    own.write_text((problems_dir() / "aten" / "t.yaml").read_text(encoding="utf-8") + stated, encoding="utf-8")
    chosen = ("--problem-dir", str(tmp_path / "own"), "--problems", "mine/t,aten/t", "--model", "baseline")
    assert run(tmp_path / "runs", *chosen, "--device", "cpu").exit_code == 0
    own.write_text(own.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    session.jobs_seen.clear()
    session.act = staticmethod(interrupt_at("mine/t"))
    done = resume(tmp_path / "runs")
    assert "1 result of older problem files left out." in done.stdout
    assert "mine: 1 problem, 0 against the library, 1 not timed" in done.stdout
    session.act = staticmethod(lambda job: None)
    done = resume(tmp_path / "runs")
    assert (done.exit_code, session.jobs_seen) == (0, ["mine/t"])
    assert "1 result of older problem files left out." in done.stdout
    assert "not evaluated" not in done.stdout
    assert "nothing to do" in resume(tmp_path / "runs").stderr


def test_second_writer_is_turned_away(out: Path, session: type[Session]) -> None:
    holder = RunStore.reopen(only_run(out))
    refused = resume(out)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "another kgbench is writing this run; wait until it has ended" in refused.stderr
    holder.close()
    assert resume(out).exit_code == 0


def test_run_in_progress_holds_the_lock(tmp_path: Path, session: type[Session]) -> None:
    seen: list[CliResult] = []

    def act(job: Job) -> None:
        if not seen:
            seen.append(resume(tmp_path))

    session.act = staticmethod(act)
    assert run(tmp_path, "--problems", "aten/mm", "--model", "baseline", "--device", "cpu").exit_code == 0
    assert "another kgbench is writing this run" in seen[0].stderr


def test_session_that_cannot_be_had_leaves_the_run_as_it_was(
    out: Path, session: type[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Session) -> Session:
        raise MachineError("KGB315", "level 'process'")

    before = [(path, path.read_bytes()) for path in sorted(only_run(out).rglob("*")) if path.is_file()]
    monkeypatch.setattr(session, "__enter__", refuse)
    assert resume(out).exit_code == 3
    assert [(path, path.read_bytes()) for path in sorted(only_run(out).rglob("*")) if path.is_file()] == before
    monkeypatch.undo()
    assert RunStore.reopen(only_run(out))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--model", "examples"),
            "started with --model baseline; leave --model out, or start a new run without --resume",
        ),
        (("--source", "cublas"), "started without --source; leave --source out"),
        (
            ("--problems", "aten/mm"),
            "started with --problems aten/add,aten/mm,aten/softmax,aten/t; leave --problems out",
        ),
        (("--timeout", "50"), "started without --deadline; leave --deadline out"),
        (("--seed", "x"), "leave --seed out"),
    ],
)
def test_options_that_ask_for_another_run_are_refused(
    out: Path, session: type[Session], arguments: tuple[str, ...], words: str
) -> None:
    done = resume(out, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert resume(out, "--model", "baseline", *CHOSEN).exit_code == 0


def test_kernels_given_by_a_relative_path_are_looked_for_where_the_run_was_begun(
    tmp_path: Path, session: type[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kernels" / "aten" / "mm.py"
    file.parent.mkdir(parents=True)
    file.write_text("def mm(self, mat2): ...\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    session.act = staticmethod(interrupt_at("aten/mm"))
    run(tmp_path / "runs", "--problems", "aten/mm", "--model", "dir:kernels", "--device", "cpu")
    session.act = staticmethod(lambda job: None)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = resume(tmp_path / "runs")
    assert done.exit_code == 2
    assert f"go there: cd {tmp_path} && kgbench run --resume" in done.stderr
    monkeypatch.chdir(tmp_path)
    assert resume(tmp_path / "runs").exit_code == 0


def test_run_of_an_older_kgbench_is_not_guessed_at(tmp_path: Path, session: type[Session]) -> None:
    RunStore.create(tmp_path, "20260101T000000Z-000000", {"problems": []}, seed="s").finish(
        "failed", finished="", seed="s"
    )
    assert "start a new run" in resume(tmp_path).stderr


def test_of_several_samples_only_the_missing_one_is_judged(
    tmp_path: Path, session: type[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mm.0.py", "mm.1.py", "t.py"):
        file = tmp_path / "kernels" / "aten" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("def mm(self, mat2): ...\ndef t(self): ...\n", encoding="utf-8")
    chosen = ("--problems", "aten/t,aten/mm", "--model", f"dir:{tmp_path / 'kernels'}", "--device", "cpu")
    run(tmp_path / "runs", *chosen)
    rewrite_lines(tmp_path / "runs", lambda lines: [line for line in lines if '"sample": 1' not in line])
    session.jobs_seen.clear()
    asked: list[str] = []
    candidates = FolderProvider.candidates

    def spy(self: FolderProvider, problem: Problem) -> Iterable[Candidate]:
        asked.append(problem.id)
        return candidates(self, problem)

    monkeypatch.setattr(FolderProvider, "candidates", spy)
    done = resume(tmp_path / "runs")
    assert (done.exit_code, session.jobs_seen, asked) == (0, ["aten/mm"], ["aten/mm"])
    assert sorted((each.problem, each.sample) for each in read_run(only_run(tmp_path / "runs")).results) == [
        ("aten/mm", 0),
        ("aten/mm", 1),
        ("aten/t", 0),
    ]


def test_who_was_judged_when_a_device_broke_is_judged_alone_and_not_a_third_time(
    tmp_path: Path, session: type[Session]
) -> None:
    out, faults = tmp_path / "runs", {"aten/mm": Fault.BROKE_DEVICE, "aten/t": Fault.BROKE_DEVICE}

    def act(job: Job) -> Result | None:
        fault = faults.get(job.problem_id)
        trouble = None if fault is None else HarnessTrouble(fault, str(fault))
        return trouble and without_evaluation(job, Outcome.HARNESS_ERROR, trouble, "cpu")

    session.act = staticmethod(act)
    assert run(out, *CHOSEN, "--model", "baseline", "--device", "cpu").exit_code == 1
    assert session.suspects_seen == []
    session.jobs_seen.clear()
    faults = {"aten/mm": Fault.BROKE_DEVICES}
    assert resume(out).exit_code == 1
    assert session.jobs_seen == session.suspects_seen == ["aten/mm", "aten/t"]
    session.jobs_seen.clear()
    resume(out)
    assert session.jobs_seen == []
