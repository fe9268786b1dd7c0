"""``kgbench selftest`` and its parts, ended early: what is finished is printed. With a session that is none."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

import pytest
from click.testing import CliRunner
from click.testing import Result as CliResult

from kgbench.cli import selftest
from kgbench.cli.main import main
from kgbench.cli.selftest_parts import CutShort, Part
from kgbench.core.errors import MachineError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session import session as session_module
from kgbench.harness.session.errors import SessionClosed
from tests.unit.made_results import result, timing

PARTS = {
    "exploits": ["answers_nan", "forges_the_verdict", "replays_by_address", "replays_by_shape"],
    "mutants": ["aten/mm", "--mutant", "zeros", "--mutant", "constant", "--mutant", "half", "--mutant", "copy"],
    "null": ["aten/mm", "aten/neg", "aten/add", "aten/softmax", "--no-keep"],
}
"""Four evaluations of each part."""


class Session:
    """Judges ``ready`` candidates; then ``act`` happens, and whoever is at work waits until it is closed."""

    act: Callable[[], None]
    ready = 2
    jobs = 1
    """One after the other, so that all that were started before are finished."""
    facts = {"kind": "cpu"}  # noqa: RUF012
    begun = 0
    stuck = 0
    """Who waited in vain."""
    opened = 0
    most_opened = 3

    def __init__(self, settings: object) -> None:
        self.closed = threading.Event()
        self.lock = threading.Lock()

    def __enter__(self) -> Session:
        type(self).opened += 1
        if self.opened > self.most_opened:
            fail()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.closed.set()

    def evaluate(self, job: Job) -> Result:
        with self.lock:
            type(self).begun += 1
            number = self.begun
        if number == self.ready + 1:
            type(self).act()
        if number > self.ready:
            type(self).stuck += not self.closed.wait(5)
            raise SessionClosed("KGB316", "the session was closed while a candidate was judged")
        if job.trusted == "baseline":
            return result(job.problem_id, timing(1.0), device="cpu")
        return Result(job.problem_id, job.model, 0, Outcome.WRONG_VALUE)


def interrupt() -> None:
    """Once the main thread waits again, as it does nearly always."""
    time.sleep(0.3)
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGTERM)


def fail() -> None:
    raise MachineError("KGB312", "no device is left")


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Session]]:
    fake = type("Fake", (Session,), {"act": staticmethod(interrupt)})
    monkeypatch.setattr(session_module, "Session", fake)
    before = signal.getsignal(signal.SIGTERM)
    yield fake
    assert signal.getsignal(signal.SIGTERM) is before
    assert not fake.stuck, "the session is closed before anybody is waited for"


def run(*arguments: str) -> CliResult:
    return CliRunner().invoke(main, ["selftest", *arguments, "--device", "cpu"])


@pytest.mark.parametrize("part", PARTS)
def test_an_interrupted_part_prints_what_is_finished(session: type[Session], part: str) -> None:
    done = run(part, *PARTS[part])
    assert done.exit_code == 130, done.output
    last = done.stdout.splitlines()[-1]
    assert last.endswith(", interrupted with 2 not reached")
    assert {"exploits": "2 of 2 exploits", "mutants": "2 of 2 mutants", "null": "0 of 2 libraries"}[part] in last
    assert done.stderr.endswith("kgbench: KGB601: interrupted\n")


@pytest.mark.parametrize("part", PARTS)
def test_json_of_an_interrupted_part_says_so(session: type[Session], part: str) -> None:
    done = run(part, *PARTS[part], "--json")
    assert done.exit_code == 130, done.output
    data = json.loads(done.stdout)
    assert (data["status"], data["not_reached"], len(data["problems" if part == "null" else "rows"])) == (
        "interrupted", 2, 2,
    )  # fmt: skip


def test_a_machine_that_fails_ends_with_3_and_what_is_finished(session: type[Session]) -> None:
    session.act = staticmethod(fail)
    done = run("exploits", *PARTS["exploits"])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (3, "kgbench: KGB312: no device is left")
    assert done.stdout.splitlines()[-1] == "2 of 2 exploits caught, 2 classes, failed with 2 not reached"


def test_where_nothing_is_finished_only_the_reason_is_printed(session: type[Session]) -> None:
    session.ready = 0
    done = run("exploits", *PARTS["exploits"])
    assert (done.exit_code, done.stdout) == (130, "")


def test_a_whole_part_says_that_it_is_finished(session: type[Session]) -> None:
    data = json.loads(run("exploits", "answers_nan", "replays_by_shape", "--json").stdout)
    assert (data["status"], data["not_reached"]) == ("finished", 0)


def test_each_library_is_said_when_it_is_timed(session: type[Session]) -> None:
    done = run("null", "aten/mm", "aten/neg", "--no-keep")
    assert done.exit_code == 0, done.output
    lines = sorted(done.stderr.splitlines(), key=lambda line: line.split()[1])
    assert [line.partition("] ")[2] for line in lines] == [
        "aten/mm passed 1.00x [0.98, 1.02]",
        "aten/neg passed 1.00x [0.98, 1.02]",
    ]
    assert sorted(line.split()[0] for line in lines) == ["[1/2]", "[2/2]"]


def test_kept_noise_says_what_it_does(session: type[Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    session.ready = 100
    (kept,) = [line for line in run("null", "aten/mm", "--runs", "10").stdout.splitlines() if "kept" in line]
    (file,) = tmp_path.rglob("*.json")
    assert kept == f"noise kept in {file}: later intervals here are at least as wide; without the file they are not"


def test_the_whole_keeps_the_parts_that_are_finished(session: type[Session]) -> None:
    session.ready = 100
    done = run()
    assert done.exit_code == 130, done.output
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("---")] == ["--- exploits ---", "--- mutants ---"]
    assert " not reached; null not run (" in lines[-1]
    session.begun = session.opened = 0
    data = json.loads(run("--json").stdout)
    assert data["status"] == data["mutants"]["status"] == "interrupted"
    assert data["exploits"]["status"] == "finished"
    assert "null" not in data


def test_a_part_that_cannot_begin_costs_no_other(session: type[Session]) -> None:
    session.ready, session.most_opened = 1000, 1
    done = run()
    assert done.exit_code == 3, done.output
    assert done.stdout.splitlines()[0] == "--- exploits ---"
    assert "; mutants not run; null not run (" in done.stdout.splitlines()[-1]


def test_what_is_not_whole_holds_only_so_far(session: type[Session]) -> None:
    cut = CutShort(KeyboardInterrupt(), 7)
    found = {
        "exploits": Part("9 of 9 caught", True),
        "mutants": Part("1 of 1 caught", True, [], {}, cut),
    }
    line = selftest.quoted(found, 3.0)
    assert line.endswith(
        "holds so far: 9 of 9 caught; 1 of 1 caught, interrupted with 7 not reached; null not run (3 s)"
    )
    found["exploits"] = Part("8 of 9 caught", False)
    assert "DOES NOT HOLD: 8 of 9 caught" in selftest.quoted(found, 3.0)
