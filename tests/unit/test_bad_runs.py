"""Runs that are empty, damaged or of an older kgbench, and folders that are none: what is said, and what is shown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.cli.report_output import FORMATS
from kgbench.core.outcomes import Outcome
from kgbench.reports.model import report_of
from kgbench.store.encoding import json_text
from kgbench.store.reader import read_run
from tests.unit.made_results import result, timing
from tests.unit.test_export_tidy import stored

OLDER = sorted((Path(__file__).parent / "data" / "older").iterdir())
"""Runs as versions of kgbench wrote them: ``first`` has no samples, rounds, segments, asked, evidence or generation."""
TEXT = [name for name in FORMATS if name != "parquet"]


def shown(run: Path | str, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["report", str(run), *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("run", OLDER, ids=lambda path: path.name)
@pytest.mark.parametrize("form", TEXT)
def test_a_run_of_an_older_kgbench_is_shown_in_every_format(run: Path, form: str) -> None:
    code, output = shown(run, "--format", form)
    assert code == 0, output
    assert output


@pytest.mark.parametrize("with_windows", [False, True])
def test_a_run_of_the_first_kgbench_has_its_scores(with_windows: bool) -> None:
    read = read_run(OLDER[0], with_windows=with_windows)
    (note,) = read.notes
    assert note.startswith("KGB627")
    assert f"`kgbench run --model dir:{OLDER[0] / 'candidates'}` judges its kernels anew" in note
    (row, _) = report_of(read).rows
    assert row.speedup is not None
    assert (row.correct, row.problems, row.speedup.point) == (1, 2, pytest.approx(2.0))


@pytest.mark.parametrize("form", TEXT)
def test_an_empty_run_says_so_and_is_shown(tmp_path: Path, form: str) -> None:
    run = stored(tmp_path)
    code, output = shown(run, "--format", form)
    assert code == 0, output
    assert "KGB608: results.jsonl is empty: no candidate was finished" in output
    assert f"The run ended without a result. `kgbench run --resume {run}` does what is missing" in output
    if form == "table":
        assert "0.0 %" in output


def test_an_empty_run_that_was_killed_says_how_to_go_on(tmp_path: Path) -> None:
    run = stored(tmp_path)
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "status": "running"}))
    assert f"`kgbench run --resume {run}` does what is missing" in shown(run)[1].replace("\n", " ")


def test_a_half_written_line_is_left_out_wherever_it_is(tmp_path: Path) -> None:
    run = stored(tmp_path, result("aten/mm", timing(2.0)), result("aten/t", timing(2.0)))
    file = run / "results.jsonl"
    mm, t = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(mm[:100] + b"\n" + t + mm[:100])
    read = read_run(run)
    assert [each.problem for each in read.results] == ["aten/t"]
    output = shown(run)[1]
    assert "results.jsonl:3: the last line is cut off and left out" in output
    assert f"killed there; `kgbench run --resume {run}` judges it again" in output
    assert "results.jsonl:3" in shown(run, "--format", "csv")[1]
    assert "results.jsonl:3" in shown(run, "--cite")[1]
    assert "results.jsonl:1: not a result" in output
    assert "1 of 2 lines cannot be read and are left out" in output


def test_an_outcome_of_a_newer_kgbench_is_a_line_that_cannot_be_read(tmp_path: Path) -> None:
    run = stored(tmp_path, result("aten/mm", timing(2.0)))
    line = {**result("aten/t", outcome=Outcome.PASSED).to_json(), "outcome": "teleported"}
    with (run / "results.jsonl").open("a") as file:
        file.write(json_text(line) + "\n")
    assert "'teleported' is not a valid Outcome" in shown(run)[1]


@pytest.mark.parametrize("text", [None, "", '{"format": 1', "[]", "{}"])
def test_results_without_their_run_json_are_shown(tmp_path: Path, text: str | None) -> None:
    run = stored(tmp_path, result("aten/mm", timing(2.0)))
    (run / "run.json").unlink()
    if text is not None:
        (run / "run.json").write_text(text)
    code, output = shown(run)
    assert code == 0, output
    assert "KGB614" in output
    assert "shares are of the problems that have a result" in output
    assert "100.0 %" in output


@pytest.mark.parametrize(
    ("make", "number", "step"),
    [
        (lambda path: path.mkdir(), "KGB408", "give a folder that kgbench run made"),
        (lambda path: path.write_text("x"), "KGB4", ""),
        (lambda path: None, "KGB4", ""),
        (lambda path: (path.mkdir(), (path / "run.json").write_text("")), "KGB409", "restore it from a copy"),
        (lambda path: (path.mkdir(), (path / "run.json").write_text("{}")), "KGB410", "that kgbench run made"),
        (lambda path: (path.mkdir(), (path / "run.json").write_text('{"format": 99}')), "KGB411", "update kgbench"),
    ],
    ids=["a folder", "a file", "nothing", "an empty run.json", "another run.json", "a newer one"],
)
def test_what_is_no_run_says_what_to_do(tmp_path: Path, make: object, number: str, step: str) -> None:
    path = tmp_path / "thing"
    make(path)  # type: ignore[operator]
    code, output = shown(path)
    assert code == 2
    assert number in output
    assert step in output
    assert "Traceback" not in output


def test_nothing_that_is_read_is_changed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(OLDER[0], run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for form in TEXT:
        shown(run, "--format", form)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
