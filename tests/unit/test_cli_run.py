"""The run from command line to exit code, with a session that needs no torch. The real one is tests/harness's."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult
from rich.console import Console

from kgbench.cli.evaluation_run import exit_code
from kgbench.cli.main import main
from kgbench.cli.options import thresholds
from kgbench.cli.report import report as report_command
from kgbench.cli.run import run as run_command
from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.errors import KgbenchError, MachineError, UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.evaluation import coordinator
from kgbench.evaluation.coordinator import Ending, Plan
from kgbench.harness.machine.settings import Deadlines, Job
from kgbench.harness.session import session as session_module
from kgbench.models.providers.dir import FolderProvider
from kgbench.models.providers.examples import DEMO
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry
from kgbench.reports.model import report_of
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore
from tests.unit.made_results import result, timing

FACTS = {"name": "CPU", "kind": "cpu", "memory_gb": 8.0, "versions": {"torch": "2.13"}, "sandbox": {"network": "none"}}


class FakeSession:
    """Passes everything; ``act`` may do something else first."""

    act: Callable[[Job], Result | None] = staticmethod(lambda job: None)
    leave: Callable[[], None] = staticmethod(lambda: None)
    jobs = 1
    most = property(lambda fake: fake.jobs)
    timed_s = 0.0

    def __init__(self, settings: object = None) -> None:
        self.settings = settings
        self.facts: dict[str, Any] = FACTS
        self.closed = False

    def __enter__(self) -> FakeSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()
        self.close()

    def close(self) -> None:
        self.closed = True

    def evaluate(self, job: Job, on_event: Callable[[str, str], None]) -> Result:
        on_event("check", "1 of 3")
        return self.act(job) or dataclasses.replace(result(job.problem_id, timing(0.83)), model=job.model)


def problem(name: str) -> Problem:
    return Problem(f"aten/{name}", "aten", name, "", "", "compute", "", (), Path(f"/elsewhere/{name}.yaml"), "0" * 64)


def plan(tmp_path: Path, *names: str) -> Plan:
    folder = tmp_path / "kernels"
    for name in names:
        (folder / "aten").mkdir(parents=True, exist_ok=True)
        (folder / "aten" / f"{name}.py").write_text(f"def {name}(): ...\n")
    return Plan(
        problems=tuple(map(problem, names)),
        provider=FolderProvider("dir:kernels", folder),
        command=("kgbench", "run"),
        seed="secret",
        seed_is_secret=True,
        out=tmp_path / "runs",
        run_id="20260101T000000Z-abc123",
        started=datetime(2026, 1, 1, tzinfo=UTC),
        deadlines=Deadlines(),
    )


def carry_out(chosen: Plan, session: FakeSession) -> tuple[Ending, str]:
    lines = io.StringIO()
    return coordinator.run(chosen, lambda store: session, Console(file=lines, width=200)), lines.getvalue()


class TestCoordinator:
    def test_every_candidate_is_kept_judged_stored_and_shown(self, tmp_path: Path) -> None:
        chosen = plan(tmp_path, "a", "b")
        ending, lines = carry_out(chosen, FakeSession())
        run = read_run(ending.path)
        assert [r.problem for r in run.results] == ["aten/a", "aten/b"]
        assert (ending.path / "candidates" / "aten" / "a.0.py").read_text() == "def a(): ...\n"
        assert lines.splitlines()[1] == "[2/2] aten/b passed 0.83x [0.81, 0.85]"
        assert (run.info["status"], run.info["segments"][0]["seed"], run.info["device"]) == (
            "finished",
            "secret",
            FACTS,
        )
        assert [entry["own"] for entry in run.info["problems"]] == [True, True]
        assert run.info["declared"] == Counter(each.partition("/")[0] for each in Registry().ids())

    def test_missing_file_is_a_result_and_never_reaches_the_session(self, tmp_path: Path) -> None:
        chosen = plan(tmp_path, "a")
        chosen = dataclasses.replace(chosen, problems=(*chosen.problems, problem("missing")))
        session = FakeSession()
        seen: list[str] = []
        session.act = lambda job: seen.append(job.problem_id)
        ending, _ = carry_out(chosen, session)
        assert [r.outcome for r in read_run(ending.path).results] == [Outcome.PASSED, Outcome.NO_CANDIDATE]
        assert seen == ["aten/a"]

    def test_result_is_on_disk_before_the_next_candidate_begins(self, tmp_path: Path) -> None:
        chosen = plan(tmp_path, "a", "b")
        counts: list[int] = []

        def count(job: Job) -> None:
            lines = (chosen.out / chosen.run_id / "results.jsonl").read_text().splitlines()
            counts.append(len(lines))

        session = FakeSession()
        session.act = count
        carry_out(chosen, session)
        assert counts == [0, 1]

    @pytest.fixture
    def heard(self, number: signal.Signals) -> Iterator[None]:
        """Also where these tests run below nohup, which has SIGHUP ignored."""
        before = signal.getsignal(number)
        if before is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
        yield
        signal.signal(number, before)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    @pytest.mark.usefixtures("heard")
    def test_signal_ends_the_run_and_keeps_what_is_finished(self, tmp_path: Path, number: signal.Signals) -> None:
        chosen = plan(tmp_path, "a", "b", "c")
        before = signal.getsignal(number)

        def interrupt(job: Job) -> None:
            if job.problem_id == "aten/b":
                os.kill(os.getpid(), number)

        session = FakeSession()
        session.act = interrupt
        # A second signal must not stop the cleaning up.
        session.leave = lambda: os.kill(os.getpid(), number)
        ending, _ = carry_out(chosen, session)
        run = read_run(ending.path)
        assert ending.interrupted
        assert session.closed
        assert [r.problem for r in run.results] == ["aten/a"]
        assert run.info["status"] == "interrupted"
        assert report_of(run).rows[0].not_evaluated == 2
        assert signal.getsignal(number) is before

    def test_machine_that_fails_in_the_middle_leaves_what_is_finished(self, tmp_path: Path) -> None:
        def fail(job: Job) -> None:
            if job.problem_id == "aten/b":
                raise MachineError("KGB309", "the GPU fell off the bus")

        session = FakeSession()
        session.act = fail
        ending, _ = carry_out(plan(tmp_path, "a", "b"), session)
        assert str(ending.error) == "the GPU fell off the bus"
        assert read_run(ending.path).info["status"] == "failed"
        assert len(read_run(ending.path).results) == 1

    def test_what_is_at_work_when_no_device_is_left_still_ends(self, tmp_path: Path) -> None:
        class Failing(FakeSession):
            jobs = 2

        failed = threading.Event()

        def act(job: Job) -> None:
            if job.problem_id == "aten/b":
                session.jobs = 0
                failed.set()
                raise MachineError("KGB309", "the GPU fell off the bus")
            assert failed.wait(20)
            time.sleep(0.2)

        session = Failing()
        session.act = act
        ending, _ = carry_out(plan(tmp_path, "a", "b", "c"), session)
        assert str(ending.error) == "the GPU fell off the bus"
        assert [each.problem for each in read_run(ending.path).results] == ["aten/a"]

    def test_a_run_ends_when_the_last_device_stopped_working_with_its_only_candidate(self, tmp_path: Path) -> None:
        def act(job: Job) -> Result:
            if session.jobs == 0:
                raise MachineError("KGB309", "no device is left that works")
            session.jobs = 0
            trouble = HarnessTrouble(Fault.BROKE_DEVICE, "the device stopped working meanwhile")
            return dataclasses.replace(result(job.problem_id, outcome=Outcome.HARNESS_ERROR), detail=trouble)

        session = FakeSession()
        session.act = act
        ending, _ = carry_out(plan(tmp_path, "a", "b"), session)
        assert str(ending.error) == "no device is left that works"
        assert [each.outcome for each in read_run(ending.path).results] == [Outcome.HARNESS_ERROR]

    @pytest.mark.parametrize("out_is_there", [False, True])
    def test_session_that_cannot_be_had_leaves_nothing(self, tmp_path: Path, out_is_there: bool) -> None:
        class Refused(FakeSession):
            def __enter__(self) -> FakeSession:
                raise MachineError("KGB315", "the sandbox on this machine is level 'process'")

        chosen = plan(tmp_path, "a")
        if out_is_there:
            chosen.out.mkdir()
        with pytest.raises(MachineError, match="level 'process'"):
            carry_out(chosen, Refused())
        assert chosen.out.exists() is out_is_there
        assert not out_is_there or list(chosen.out.iterdir()) == []

    def test_bug_rises_after_the_run_was_closed(self, tmp_path: Path) -> None:
        def fail(job: Job) -> None:
            raise ZeroDivisionError

        chosen, session = plan(tmp_path, "a"), FakeSession()
        session.act = fail
        with pytest.raises(ZeroDivisionError):
            carry_out(chosen, session)
        assert read_run(chosen.out / chosen.run_id).info["status"] == "failed"

    def test_run_id_sorts_by_time(self) -> None:
        assert coordinator.new_run_id(datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC), "ab") == "20260131T235958Z-ab"


@pytest.fixture
def fake_session(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    class Session(FakeSession):
        pass

    monkeypatch.setattr(session_module, "Session", Session)
    return Session


def invoke(*arguments: str, out: Path) -> CliResult:
    return CliRunner().invoke(run_command, [*arguments, "--out", str(out)])


def only_run(out: Path) -> Path:
    (path,) = out.iterdir()
    return path


@pytest.mark.torch
class TestCommand:
    def test_table_on_stdout_progress_on_stderr(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        done = invoke("--source", "cublas", "--model", "examples", "--device", "cpu", out=tmp_path)
        assert done.exit_code == 0, done.output
        assert "cublas compute" in done.stdout
        assert "[1/" not in done.stdout
        assert re.search(r"^\[\d+/\d+\] cublas/cublasSdot_v2 passed 0\.83x", done.stderr, re.MULTILINE)
        assert f"results: {only_run(tmp_path)}" in done.stdout

    def test_demo_judges_some_of_each_source_and_says_what_is_next(
        self, tmp_path: Path, fake_session: type[FakeSession]
    ) -> None:
        done = CliRunner().invoke(main, ["demo", "--device", "cpu", "--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
        assert sorted(result.problem for result in read_run(only_run(tmp_path)).results) == sorted(DEMO)
        commands = re.findall(r"^  \S*kgbench (.+)$", done.stdout.partition("Next:")[2], re.MULTILINE)
        assert [words.split()[0] for words in commands] == ["show", "check", "run"]
        shown = CliRunner().invoke(main, shlex.split(commands[0]))
        assert shown.exit_code == 0, shown.output

    def test_json_is_all_that_stdout_carries(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        done = invoke("--source", "aten,vllm", "--model", "examples", "--device", "cpu", "--json", out=tmp_path)
        data = json.loads(done.stdout)
        assert {row["source"] for row in data["scores"]} == {"aten", "vllm"}
        assert data["run"]["path"] == str(only_run(tmp_path))

    def test_file_selects_its_problem(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        file = tmp_path / "mine" / "aten" / "softmax.py"
        file.parent.mkdir(parents=True)
        file.write_text("def softmax(): ...\n")
        done = invoke("--model", str(file), "--device", "cpu", out=tmp_path / "runs")
        assert done.exit_code == 0, done.output
        assert [r.problem for r in read_run(only_run(tmp_path / "runs")).results] == ["aten/softmax"]

    @pytest.mark.parametrize(
        ("outcome", "options", "code"),
        [
            (Outcome.PASSED, (), 0),
            (Outcome.PASSED, ("--fail",), 0),
            (Outcome.WRONG_VALUE, (), 0),
            (Outcome.WRONG_VALUE, ("--fail",), 1),
            (Outcome.HARNESS_ERROR, (), 1),
        ],
    )
    def test_exit_code(
        self, tmp_path: Path, fake_session: type[FakeSession], outcome: Outcome, options: tuple[str, ...], code: int
    ) -> None:
        fake_session.act = staticmethod(lambda job: Result(job.problem_id, job.model, 0, outcome))
        done = invoke("--problems", "aten/mm", "--model", "baseline", "--device", "cpu", *options, out=tmp_path)
        assert done.exit_code == code

    @pytest.mark.parametrize(
        ("bounds", "code", "words"),
        [
            ("fast_0=1.0,aten:right=1,fast_0.5=1,cublas:fast_0.8=1", 0, ""),
            ("fast_0=1.0,cublas:fast_1=0.5", 1, "--fail-under 'cublas:fast_1=0.5': it is 0 of 1 problem, below 0.5\n"),
            ("fast_1=0.01", 1, "--fail-under 'fast_1=0.01': it is 0 of 2 problems, below 0.01\n"),
        ],
    )
    def test_fail_under_says_which_bound_broke_with_both_numbers(
        self, tmp_path: Path, fake_session: type[FakeSession], bounds: str, code: int, words: str
    ) -> None:
        chosen = ("--problems", "aten/mm,cublas/cublasSgemm_v2", "--model", "baseline", "--device", "cpu")
        done = invoke(*chosen, "--fail-under", bounds, out=tmp_path)
        again = CliRunner().invoke(report_command, ["last", "--out", str(tmp_path), "--fail-under", bounds])
        assert (done.exit_code, again.exit_code, again.stdout) == (code, code, done.stdout)
        assert again.stderr == (words and f"kgbench: KGB602: {words}")
        assert done.stderr.endswith(words)

    def test_fail_under_holds_no_bound_on_a_speed_that_means_nothing(
        self, tmp_path: Path, fake_session: type[FakeSession]
    ) -> None:
        fake_session.act = staticmethod(
            lambda job: dataclasses.replace(result(job.problem_id, timing(2.0)), model=job.model, interpreted=True)
        )
        bounds = ("--fail-under", "fast_0=1,fast_1=0.1")
        done = invoke("--problems", "aten/mm", "--model", "baseline", "--device", "cpu", *bounds, out=tmp_path)
        assert done.exit_code == 1
        assert "'fast_1=0.1': the speed is not known, since kernels ran in Triton's interpreter" in done.stderr
        assert "fast_0=1'" not in done.stderr

    def test_interrupted_prints_the_table_and_exits_130(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        def interrupt(job: Job) -> None:
            if job.problem_id == "aten/mm":
                raise KeyboardInterrupt

        fake_session.act = staticmethod(interrupt)
        chosen = ("--problems", "aten/add,aten/mm,aten/softmax,aten/t")
        done = invoke(*chosen, "--model", "baseline", "--device", "cpu", out=tmp_path)
        assert done.exit_code == 130
        assert "not correct: 3 not evaluated" in done.stdout
        assert "The run was interrupted." in done.stdout

    def test_report_prints_the_same_table_again(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        done = invoke("--problems", "aten/mm", "--model", "baseline", "--device", "cpu", out=tmp_path)
        again = CliRunner().invoke(report_command, [str(only_run(tmp_path))])
        assert again.exit_code == 0
        assert again.stdout == done.stdout

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((), "kgbench run --model examples"),
            (("--model", "clod"), "dir:PATH"),
            (("--model", "examples", "--source", "cuda"), "cuda"),
            (("--model", "examples", "--problems", "aten/softmx"), "aten/softmax"),
            (("--model", "examples", "--deadline", "case"), "PHASE=SECONDS"),
            (("--model", "examples", "--deadline", "lunch=3"), "compile"),
            (("--model", "examples", "--deadline", "case=nan"), "PHASE=SECONDS"),
            (("--model", "examples", "--deadline", "whole=3", "--timeout", "4"), "one of the two"),
            (("--model", "examples", "--timeout", "0"), "--timeout"),
            (("--model", "examples", "--fast-at", "0,x"), "--fast-at"),
            (("--model", "examples", "--fail-under", "fast1=1"), "for example --fail-under 'fast_0=1.0,cublas:"),
            (("--model", "examples", "--fail-under", "fast_0=100"), "a share from 0 to 1"),
            (("--model", "examples", "--source", "aten", "--fail-under", "vllm:right=1"), "there are aten"),
        ],
    )
    def test_wrong_command_line_says_what_to_write(
        self, tmp_path: Path, fake_session: type[FakeSession], arguments: tuple[str, ...], words: str
    ) -> None:
        done = invoke(*arguments, out=tmp_path)
        assert isinstance(done.exception, UsageError)
        assert words in str(done.exception)
        assert list(tmp_path.iterdir()) == []

    def test_deadlines_reach_the_session_and_the_record(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        options = ("--deadline", "compile=7", "--timeout", "50")
        invoke("--problems", "aten/mm", "--model", "baseline", "--device", "cpu", *options, out=tmp_path)
        deadlines = read_run(only_run(tmp_path)).info["deadlines"]
        expected = {"import_s": 180, "extension_s": 900, "case_s": 30, "window_s": 90}
        assert deadlines == {**expected, "compile_s": 7, "whole_s": 50}

    def test_out_that_cannot_be_written_is_a_usage_error(self, tmp_path: Path, fake_session: type[FakeSession]) -> None:
        (tmp_path / "file").write_text("")
        done = invoke("--problems", "aten/mm", "--model", "baseline", "--device", "cpu", out=tmp_path / "file")
        assert isinstance(done.exception, UsageError)
        assert "--out DIR" in str(done.exception)


@pytest.mark.parametrize("command", ["run", "generate"])
@pytest.mark.parametrize("typo", [("--source", "cubla"), ("--problems", "aten/sofmax")])
def test_a_mistyped_selection_is_named_before_a_missing_key_and_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, typo: tuple[str, str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    for model in ("claude", "clod"):
        done = CliRunner().invoke(main, [command, *typo, "--model", model, "--out", str(tmp_path)])
        assert done.exit_code == 2
        assert typo[1] in done.stderr


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_are_told_what_to_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    done = invoke("--model", "examples", out=tmp_path)
    assert isinstance(done.exception, KgbenchError)
    assert done.exception.exit_code == 3
    assert "use a Linux machine" in str(done.exception)


def test_missing_torch_comes_with_the_recipe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = invoke("--model", "examples", out=tmp_path)
    assert isinstance(done.exception, MachineError)
    assert "make demo" in str(done.exception)


@pytest.mark.parametrize("text", ["", "x", "1,", "0", "-1", "nan", "1e9"])
def test_fast_at_takes_positive_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="--fast-at"):
        thresholds(text)


def test_interruption_comes_before_every_other_exit_code(tmp_path: Path) -> None:
    store = RunStore.create(tmp_path, "x", {"problems": [{"id": "aten/a", "kind": "compute"}]}, seed="s")
    store.append(Result("aten/a", "m", 0, Outcome.HARNESS_ERROR))
    report = report_of(read_run(store.path))
    assert exit_code(report, Ending(store.path), fail=False) == 1
    assert exit_code(report, Ending(store.path, interrupted=True), fail=True) == 130


def test_coordinator_loads_neither_torch_nor_pandas() -> None:
    program = (
        "import sys, kgbench.cli.run, kgbench.cli.report\n"
        "import kgbench.evaluation.coordinator, kgbench.harness.session.session\n"
        "print(sorted({'torch', 'triton', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"


def test_help_teaches_by_example() -> None:
    text = CliRunner().invoke(run_command, ["--help"]).stdout
    assert "kgbench run --model dir:my_kernels" in text
    assert "130 interrupted" in text
