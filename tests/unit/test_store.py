"""What is finished stays: truncated lines, full disks, floats that are not finite, and the secret seed."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Generation, Library, Result, Timing, Window
from kgbench.store.encoding import json_text, sha256
from kgbench.store.errors import StoreError, WriteError
from kgbench.store.find import find_run
from kgbench.store.reader import read_run
from kgbench.store.writer import RunStore

SEED = "a seed that nobody may know"


def make(out: Path) -> RunStore:
    return RunStore.create(out, "20260101T000000Z-abc123", {"status": "running"}, seed=SEED)


def full_result(problem: str = "aten/mm") -> Result:
    window = Window("library", "window", 20, 200.5, math.inf)
    timing = Timing(10.0, 5.0, 2.0, math.nan, math.inf, "window", False, True, windows=(window,))
    mismatch = Mismatch("return", (0, 3), "nan", "1.5", "1e-6", 0.25, (4, 4), "float32")
    case = CaseResult(
        "bench[0]", "", "bench", "float32", {"alpha": math.inf, "z": 1 + 2j}, Outcome.PASSED, "", mismatch
    )
    cases = (case, CaseResult("bench[0]", "", "bench", "float32", {}, Outcome.PASSED, timing=timing))
    library = Library("torch 2.13")
    return Result(problem, "m", 0, Outcome.PASSED, cases=cases, library=library, log_tail="bad \ud800 text")


def test_result_survives_writing_and_reading(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.append(full_result())
    made.finish("finished", finished="2026-01-01T00:00:01+00:00", seed=SEED)
    run = read_run(made.path, with_windows=True)
    (read,) = run.results
    assert read.cases[0].mismatch == full_result().cases[0].mismatch
    assert read.library == full_result().library
    timing = read.cases[1].timing
    assert timing is not None
    assert math.isnan(timing.low)
    assert timing.high == math.inf
    assert timing.windows == (Window("library", "window", 20, 200.5, math.inf),)
    assert read.cases[0].variables == {"alpha": "inf", "z": "(1+2j)"}
    assert run.notes == ()


def test_how_a_candidate_was_written_survives_and_older_lines_are_read(tmp_path: Path) -> None:
    written = Generation("model-7", 1200, 0, None, 800, 31.5, 0.064, "end", "0" * 64, True, 3, "confined")
    made = make(tmp_path)
    made.append(Result("aten/mm", "m", 2, Outcome.PASSED, round=1, generation=written))
    made.finish("finished", finished="", seed=SEED)
    (path,) = made.path.glob("results.jsonl")
    data = json.loads(path.read_text())
    older = {name: value for name, value in data.items() if name not in ("round", "generation")}
    path.write_text("".join(json.dumps(line) + "\n" for line in (data, older)))
    read = read_run(made.path).results
    assert [(each.sample, each.round, each.generation) for each in read] == [(2, 1, written), (2, 0, None)]


def test_windows_come_only_when_asked_for(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.append(full_result())
    timing = read_run(made.path).results[0].cases[1].timing
    assert timing is not None
    assert timing.windows == ()


def test_lines_are_strict_json(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.append(full_result())

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    line = (made.path / "results.jsonl").read_text()
    json.loads(line, parse_constant=refuse)


def test_seed_is_told_only_when_the_run_is_over(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.update({"device": {"name": "cpu"}})
    for file in made.path.rglob("*"):
        assert file.is_dir() or SEED not in file.read_text()
    assert json.loads((made.path / "run.json").read_text())["segments"][0]["seed_sha256"] == sha256(SEED)
    made.finish("finished", finished="now", seed=SEED)
    assert json.loads((made.path / "run.json").read_text())["segments"][0]["seed"] == SEED


def test_run_folder_is_closed_to_other_users(tmp_path: Path) -> None:
    assert stat.S_IMODE(make(tmp_path).path.stat().st_mode) == 0o700


def test_candidate_is_kept_as_received(tmp_path: Path) -> None:
    text = "def mm():\r\n    return 'ä'\t\n"
    path = make(tmp_path).save_candidate("aten/mm", 2, text)
    assert path.relative_to(tmp_path).parts[1:] == ("candidates", "aten", "mm.2.py")
    assert path.read_bytes() == text.encode()


def test_truncated_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.append(full_result("aten/a"))
    made.append(full_result("aten/b"))
    file = made.path / "results.jsonl"
    file.write_bytes(file.read_bytes()[:-7])
    run = read_run(made.path)
    assert [result.problem for result in run.results] == ["aten/a"]
    assert "results.jsonl:2: the last line is cut off" in run.notes[0]
    assert "killed" in run.notes[1]


def test_damage_in_the_middle_is_noted_with_its_line_and_the_rest_read(tmp_path: Path) -> None:
    made = make(tmp_path)
    made.append(full_result())
    file = made.path / "results.jsonl"
    file.write_bytes(b'{"problem": "x"\n\xff\n' + file.read_bytes())
    run = read_run(made.path)
    assert [result.problem for result in run.results] == ["aten/mm"]
    assert "results.jsonl:1: not a result" in run.notes[0]
    assert "2 of 3 lines cannot be read" in run.notes[0]


def test_nothing_but_damage_is_an_error_with_its_line(tmp_path: Path) -> None:
    made = make(tmp_path)
    (made.path / "results.jsonl").write_bytes(b'{"problem": "x"\n')
    with pytest.raises(StoreError, match=r"results\.jsonl:1: not a result"):
        read_run(made.path)


def test_unknown_keys_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    made = make(tmp_path)
    line = {**full_result().to_json(), "cases": [], "invented_later": 1}
    (made.path / "results.jsonl").write_text(json_text(line) + "\n")
    assert read_run(made.path).results[0].problem == "aten/mm"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "not a run"),
        ("[]", "not a run"),
        ('{"format": 99}', "newer kgbench"),
        ('{"format": ', "cannot read"),
    ],
)
def test_folder_that_is_no_run_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(StoreError, match=words):
        read_run(tmp_path)


def test_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write a run here: .*--out DIR"):
        make(tmp_path / "file")


def test_full_disk_keeps_what_is_finished(tmp_path: Path) -> None:
    """The limit on file size stands in for the disk: the write falls short in the middle of a line."""
    program = """
import resource, signal, sys
from pathlib import Path
from tests.unit.test_store import full_result, make
from kgbench.store.errors import WriteError
from kgbench.store.reader import read_run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
made = make(Path(sys.argv[1]))
made.append(full_result("aten/a"))
size = (made.path / "results.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
try:
    made.append(full_result("aten/b"))
except WriteError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
made.append(full_result("aten/c"))
print([result.problem for result in read_run(made.path).results])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True, text=True, timeout=30, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "results finished before are kept in" in done.stdout
    assert "['aten/a', 'aten/c']" in done.stdout


def test_run_json_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the rename, the old file still stands and nothing else is left."""
    made = make(tmp_path)
    before = (made.path / "run.json").read_text()

    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WriteError, match="No space left on device"):
        made.finish("finished", finished="now", seed=SEED)
    assert (made.path / "run.json").read_text() == before
    assert sorted(path.name for path in made.path.iterdir()) == ["candidates", "logs", "results.jsonl", "run.json"]


def test_same_id_twice_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(StoreError):
        make(tmp_path)


class TestNamesOfRuns:
    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        for run_id in ("20260101T000000Z-abc123", "20260102T000000Z-abd456", "20260103T000000Z-ffffff"):
            RunStore.create(tmp_path, run_id, {}, seed="s")
        (tmp_path / "20260104T000000Z-no-run").mkdir()
        return tmp_path

    @pytest.mark.parametrize(
        ("spelling", "found"),
        [
            ("last", "20260103T000000Z-ffffff"),
            ("20260101", "20260101T000000Z-abc123"),
            ("abd", "20260102T000000Z-abd456"),
            ("20260103T000000Z-ffffff", "20260103T000000Z-ffffff"),
        ],
    )
    def test_begin_of_an_id_or_of_its_token(self, out: Path, spelling: str, found: str) -> None:
        assert find_run(spelling, out) == out / found

    def test_path_is_taken_as_it_is(self, out: Path, tmp_path: Path) -> None:
        path = str(out / "20260101T000000Z-abc123")
        assert find_run(path, tmp_path / "elsewhere") == Path(path)

    @pytest.mark.parametrize(
        ("spelling", "words"),
        [
            ("ab", "'ab' means 2 runs: 20260101T000000Z-abc123, 20260102T000000Z-abd456; write more of the id"),
            ("77", "there is no run '77' in .*; the newest are 20260101T000000Z-abc123, "),
        ],
    )
    def test_what_means_none_or_several(self, out: Path, spelling: str, words: str) -> None:
        with pytest.raises(StoreError, match=words):
            find_run(spelling, out)

    def test_folder_without_runs_names_the_option(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="--out DIR"):
            find_run("last", tmp_path)


def test_text_that_looks_like_raw_samples_is_read_as_it_is(tmp_path: Path) -> None:
    words = 'expected "windows": [1, 2] and \\"windows\\": []'
    made = RunStore.create(tmp_path, "run", {}, seed=SEED)
    made.append(Result("aten/mm", "m", 0, Outcome.RUNTIME_ERROR, words, log_tail=words))
    (found,) = read_run(made.path).results
    assert (found.reason, found.log_tail) == (words, words)
