"""Records of a device: what beats one, two commands at once, broken files, the score, what commands say."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kgbench.cli import record_claims
from kgbench.cli.main import main
from kgbench.core.errors import KgbenchError
from kgbench.core.kinds import DeviceKind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result
from kgbench.harness.machine import devices
from kgbench.harness.session import session as session_module
from kgbench.harness.session.session import Job
from kgbench.reports.model import report_of
from kgbench.scores.rows import rows
from kgbench.scores.samples import Selected
from kgbench.store.encoding import sha256
from kgbench.store.reader import read_run
from kgbench.store.records import Claim, Records, beaten, enter, read_records, with_records
from tests.unit.made_results import result, timing
from tests.unit.test_cli_run import FACTS, FakeSession
from tests.unit.test_publishing import TEXT, gpu_run

ROOT = Path(__file__).resolve().parents[2]
H200 = "NVIDIA H200"
BUSY = (0.0, 0.0)


def of(us: dict[str, float], problem: str = "aten/p", *, width: float = 1.02, **more: Any) -> Result:
    """A result with a time of each case, in µs; its library takes twice as long."""
    times = {case: dataclasses.replace(timing(2.0, width=width), candidate_us=each) for case, each in us.items()}
    cases = tuple(CaseResult(case, "", "bench", "f", {}, Outcome.PASSED, timing=each) for case, each in times.items())
    return result(problem, **{"cases": cases, "problem_sha256": "1", "candidate_sha256": sha256(TEXT), **more})


def claim(made: Result, text: str = TEXT) -> Claim:
    made = dataclasses.replace(made, candidate_sha256=sha256(text))
    return Claim(made, text, "20260102T030405Z-ab12cd", "2026-01-02T05:00:00+00:00", "seed", BUSY)


def times(folder: Path, problem: str = "aten/p") -> dict[str, float]:
    return read_records(folder, H200).problems[problem].times()


def test_the_first_verified_kernel_is_the_record_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    assert enter(tmp_path, H200, [claim(of({"a": 10.0, "b": 20.0}))]) == {"aten/p": ["a", "b"]}
    data = json.loads((tmp_path / "h200.json").read_text())
    assert data["device"] == H200
    assert data["problems"]["aten/p"]["problem_sha256"] == "1"
    assert data["problems"]["aten/p"]["cases"]["a"] == {
        "candidate_us": 10.0, "library_us": 100.0, "ratio": 2.0, "library": "cuBLAS 13.1.0", "by": "m",
        "run": "20260102T030405Z-ab12cd", "at": "2026-01-02T05:00:00+00:00", "sha256": sha256(TEXT),
        "seed_sha256": "seed", "busy_percent": [0.0, 0.0],
    }  # fmt: skip
    assert (tmp_path / "kernels" / f"{sha256(TEXT)}.py").read_text() == TEXT


def test_a_record_falls_case_by_case_and_only_beyond_the_noise(tmp_path: Path) -> None:
    enter(tmp_path, H200, [claim(of({"a": 10.0, "b": 20.0}))])
    # 9.9 is faster by 1 %, its interval is 2 % wide; 19 is faster by 5 %.
    assert enter(tmp_path, H200, [claim(of({"a": 9.9, "b": 19.0}), "other")]) == {"aten/p": ["b"]}
    assert times(tmp_path) == {"a": 10.0, "b": 19.0}
    cases = read_records(tmp_path, H200).problems["aten/p"].cases
    assert [cases["a"].sha256, cases["b"].sha256] == [sha256(TEXT), sha256("other")]
    before = (tmp_path / "h200.json").read_bytes()
    assert enter(tmp_path, H200, [claim(of({"a": 11.0, "b": 21.0}))]) == {}
    assert (tmp_path / "h200.json").read_bytes() == before


def test_of_two_claims_the_faster_is_the_record_whatever_their_order(tmp_path: Path) -> None:
    slow, fast = claim(of({"a": 9.0})), claim(of({"a": 5.0}), "fast")
    for number, claims in enumerate(([slow, fast], [fast, slow])):
        enter(tmp_path / str(number), H200, claims)
    assert (tmp_path / "0" / "h200.json").read_bytes() == (tmp_path / "1" / "h200.json").read_bytes()


def test_another_problem_file_has_records_of_its_own(tmp_path: Path) -> None:
    enter(tmp_path, H200, [claim(of({"a": 1.0, "b": 1.0}))])
    assert enter(tmp_path, H200, [claim(of({"a": 50.0}, problem_sha256="2"))]) == {"aten/p": ["a"]}
    assert times(tmp_path) == {"a": 50.0}


@pytest.mark.parametrize(
    "made",
    [
        of({"a": 1.0}, outcome=Outcome.WRONG_VALUE),
        of({"a": 1.0}, interpreted=True),
        result("aten/p", timing(9.0, against="fallback"), problem_sha256="1"),
        of({"a": 1.0}, width=float("inf")),
    ],
    ids=["wrong", "interpreted", "against the fallback", "without an end of its interval"],
)
def test_what_is_not_certain_beats_nothing(tmp_path: Path, made: Result) -> None:
    enter(tmp_path, H200, [claim(of({"a": 10.0}))])
    assert beaten(made, read_records(tmp_path, H200)) == {}


def test_two_processes_lose_nothing_of_each_other(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from kgbench.store.records import enter\n"
        "from tests.unit.test_records import H200, claim, of\n"
        "for n in range(20):\n"
        "    made = of({'a': 100.0 - n - float(sys.argv[2]) / 2}, width=1.0001)\n"
        "    enter(Path(sys.argv[1]), H200, [claim(of({'a': 1.0}, f'aten/p{sys.argv[2]}{n}')), claim(made)])\n"
    )
    commands = [[sys.executable, "-c", code, str(tmp_path), number] for number in "01"]
    running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
    assert [each.wait(50) for each in running] == [0, 0]
    found = read_records(tmp_path, H200).problems
    assert set(found) == {"aten/p", *(f"aten/p{process}{n}" for process in "01" for n in range(20))}
    assert found["aten/p"].times() == {"a": 80.5}


BROKEN: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[:-20],
    "not ours": lambda text: "[]",
    "newer": lambda text: text.replace('"format": 1', '"format": 2'),
    "another device": lambda text: text.replace(H200, "NVIDIA H100"),
    "a key missing": lambda text: text.replace('"by"', '"buy"'),
    "no time": lambda text: text.replace('"candidate_us": 10.0', '"candidate_us": 0'),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_file_is_named_and_stays(tmp_path: Path, how: str) -> None:
    enter(tmp_path, H200, [claim(of({"a": 10.0}))])
    file = tmp_path / "h200.json"
    file.write_text(BROKEN[how](file.read_text()))
    before = file.read_bytes()
    for act in (lambda: read_records(tmp_path, H200), lambda: enter(tmp_path, H200, [claim(of({"a": 1.0}))])):
        with pytest.raises(KgbenchError, match=r"h200\.json: ") as caught:
            act()
        assert caught.value.number == "KGB436"
    assert file.read_bytes() == before


def test_record_p_by_hand(tmp_path: Path) -> None:
    """Records of 10 and 40 µs: sqrt(10/8 * 40/50) = 1.0, sqrt(10/8 * 40/32) = 1.25, with ends of 2 %."""
    for name in ("same", "fast", "slow", "gone", "wrong"):
        enter(tmp_path, H200, [claim(of({"a": 10.0, "b": 40.0}, f"aten/{name}"))])
    found = [
        of({"a": 8.0, "b": 50.0}, "aten/same"),
        of({"a": 8.0, "b": 32.0}, "aten/fast"),
        of({"a": 20.0, "b": 80.0}, "aten/slow"),
        of({"a": 1.0}, "aten/gone"),
        of({"a": 1.0, "b": 1.0}, "aten/wrong", outcome=Outcome.WRONG_VALUE),
        of({"a": 1.0}, "aten/without"),
    ]
    info = {"problems": [{"id": each.problem, "sha256": "1"} for each in found]}
    selected = [Selected(each.problem, "compute") for each in found]
    (row,) = rows(with_records(selected, info, read_records(tmp_path, H200)), found, seed="run")
    assert (row.values["record_1"], row.values["record_0.9"]) == (0.2, 0.4)  # of five that have a record
    assert "record_1" in row.intervals
    (none,) = rows(with_records(selected, {"problems": []}, read_records(tmp_path, H200)), found)
    assert "record_1" not in none.values
    assert with_records(selected, info, Records(H200, {})) == tuple(selected)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on a GPU: softmax at 1.5x, mm at 2.0x, add at 0.9x of the library, each 100 µs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kgbench.core.paths.results_dir", lambda: tmp_path / "results")
    monkeypatch.setattr("kgbench.cli.verify.check_machine", lambda: None)
    gpu = devices.Device(DeviceKind.CUDA, "GPU-1", H200)
    monkeypatch.setattr(devices, "find_devices", lambda wanted: [gpu])
    monkeypatch.setattr(devices, "busy_percent", lambda uuid: 0.0)
    monkeypatch.setattr("kgbench.cli.again._LOOK_S", 0.0)
    monkeypatch.setattr(session_module, "Session", FakeSession)
    monkeypatch.setitem(FACTS, "name", H200)
    monkeypatch.setitem(FACTS, "uuid", "GPU-1")
    monkeypatch.setattr(FakeSession, "act", staticmethod(judged))
    return gpu_run(tmp_path / "runs")


def judged(job: Job) -> Result:
    """Verified at 2.0x, in 90 µs."""
    made = dataclasses.replace(timing(2.0), candidate_us=90.0)
    more = {"problem_sha256": job.problem.sha256, "candidate_sha256": sha256(job.source or "")}
    return result(job.problem_id, made, policy="strict", sandbox={"level": "isolated"}, **more)


def verify(*more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["verify", "last", "--records", "results/records", *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def said(run: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    record_claims.say_records(report_of(read_run(run)))
    return capsys.readouterr().err.splitlines()


def test_verify_enters_winners_that_hold(run: Path) -> None:
    code, output = verify()
    assert code == 0, output
    assert "records: 2 cases of 2 problems entered in results/records/h200.json" in output
    found = read_records(Path("results/records"), H200)
    assert set(found.problems) == {"aten/softmax", "aten/mm"}  # add is no winner
    record = found.problems["aten/mm"].cases["bench[0]"]
    assert (record.candidate_us, record.by, record.run) == (90.0, "m", "20260102T030405Z-ab12cd")
    assert record.seed_sha256 not in ("", sha256("s"))
    assert "records: 0 cases of 0 problems entered" in verify()[1]


def test_records_can_be_made_source_by_source_and_problem_by_problem(run: Path) -> None:
    code, output = verify("--problems", "aten/m*")
    assert (code, "records: 1 cases of 1 problems entered" in output) == (0, True), output
    assert set(read_records(Path("results/records"), H200).problems) == {"aten/mm"}
    code, output = verify("--source", "vllm")
    assert (code, "KGB160" in output, "no winner among these problems" in output) == (2, True, True), output
    assert verify("--source", "aten")[0] == 0
    assert set(read_records(Path("results/records"), H200).problems) == {"aten/mm", "aten/softmax"}


@pytest.mark.parametrize("busy", [[7.0] * 99, [0.0, *[7.0] * 99], [None] * 99], ids=["before", "after", "not known"])
def test_nothing_is_entered_where_the_device_was_busy(
    run: Path, monkeypatch: pytest.MonkeyPatch, busy: list[float | None]
) -> None:
    monkeypatch.setattr(devices, "busy_percent", lambda uuid: busy.pop(0))
    assert "KGB651: no record was entered: the device was busy" in verify()[1]
    assert not Path("results/records").exists()


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"device": {"kind": "cpu", "name": "CPU"}}, "it was made on cpu"),
        ({"asked": {"policy": "report"}}, "its policy is not strict"),
        ({"seed_is_secret": False}, "its seed was given beforehand"),
    ],
)
def test_some_runs_make_no_records(run: Path, values: dict[str, Any], why: str) -> None:
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, **values}))
    code, output = verify()
    assert (code, "KGB437" in output, why in output) == (2, True, True), output
    assert not (run / "verification.jsonl").exists()


def test_a_weak_sandbox_makes_no_record(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weak = staticmethod(lambda job: dataclasses.replace(judged(job), sandbox={"level": "process"}))
    monkeypatch.setattr(FakeSession, "act", weak)
    output = verify()[1]
    assert "no record of 2 winners: sandbox level process, below isolated (docs/sandbox.md)" in output
    assert "records: 0 cases of 0 problems" in output


def test_a_run_says_what_would_be_a_record(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(run, capsys) == []  # no checkout, no records
    folder = Path("results/records")
    folder.mkdir(parents=True)
    assert said(run, capsys)[:2] == ["first record: aten/softmax 1.50x the library",
                                     "first record: aten/mm 2.00x the library"]  # fmt: skip
    (softmax, mm, _) = read_run(run).results
    slower, faster = (
        claim(of({"bench[0]": us}, each.problem, problem_sha256=each.problem_sha256))
        for us, each in ((102.5, softmax), (99.0, mm))
    )
    enter(folder, H200, [slower, faster])
    command = f"kgbench verify {run.relative_to(Path.cwd())} --records results/records"
    assert said(run, capsys) == [
        "new record: aten/softmax 1.50x the library, 1.02x the record",
        f"no record counts before it is verified: {command}",
    ]
    assert report_of(read_run(run), records=folder).rows[0].values["record_0.9"] == 1.0
    (folder / "h200.json").write_text("{")
    assert said(run, capsys) == []
    assert any(note.startswith("KGB650: ") for note in report_of(read_run(run), records=folder).notes)
    assert verify()[0] == 2
