"""A run is cited with all that its number needs, and a report made twice from one folder is the same to the byte."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import kgbench
from kgbench.cli.main import main
from kgbench.cli.report_output import FORMATS
from kgbench.core.types import Generation
from kgbench.reports.export.cite import bibtex
from kgbench.reports.model import report_of
from kgbench.scores.rows import BY
from kgbench.store.reader import read_run
from tests.unit.made_results import result, timing
from tests.unit.test_export_tidy import mixed, stored

ROOT = Path(__file__).resolve().parents[2]
SHA256 = "ab" * 32


def cited(run: Path) -> str:
    done = CliRunner().invoke(main, ["report", str(run), "--cite"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_sentence_has_all_that_a_number_needs(tmp_path: Path) -> None:
    time = replace(timing(2.0), noise=0.008, noise_source="measured")
    asked = Generation(model_id="claude-9-20260101")
    run = stored(
        tmp_path, result("aten/mm", time, generation=asked), model="claude",
        started="2026-01-02T03:04:05+00:00", asked={"policy": "strict"},
    )  # fmt: skip
    entry, _, sentence = cited(run).strip().partition("\n\n")
    assert sentence == (
        "Measured with kgbench on 2026-01-02: model claude (which answered as claude-9-20260101); 2 samples of each "
        "problem; 1 round; NVIDIA H200 with driver 580.82; versions kgbench 0.1.0, torch 2.11, driver 580.82; compared "
        "with cuBLAS 13.1.0; policy strict; noise floor ±0.80% (measured on the device); problem set: version 0.1.0, "
        f"3 problems, sha256 {SHA256}."
    )
    assert entry.startswith("@misc{kgbench-20260102T030405Z-ab12cd,\n")
    assert "  year         = {2026},\n" in entry


def test_a_run_that_says_nothing_is_cited_as_unknown(tmp_path: Path) -> None:
    run = stored(tmp_path, problems=[], model=None, kgbench=None, device=None, problem_set_sha256=None)
    assert "on an unknown day: model unknown" in cited(run)
    assert "problem set: version unknown, 0 problems, sha256 unknown" in cited(run)


def test_a_cpu_has_no_driver(tmp_path: Path) -> None:
    assert "; a CPU; " in cited(stored(tmp_path, device={"name": "a CPU", "kind": "cpu"}))


def test_a_models_name_is_no_tex(tmp_path: Path) -> None:
    text = bibtex(report_of(read_run(stored(tmp_path, model="exec:a_b %#&$ {x} \\input~^\n@misc{y,"))))
    body = text.split("title", 1)[1].split("\n", 1)[0]
    assert re.sub(r"\\[a-z]+\{\}|\\[&%$#_{}]", "", body).count("{") == 1
    assert text.count("\n@") == 0


def test_every_table_names_the_problem_set(tmp_path: Path) -> None:
    run = str(stored(tmp_path, *mixed()))
    words = f"problem set: version 0.1.0, 3 problems, sha256 {SHA256}"
    texts = [["--format", form] for form in ("table", "md", "latex", "cite", "github", "junit")]
    texts += [["--format", form, "--by", by] for form in ("table", "md", "latex") for by in BY]
    for arguments in texts:
        shown = CliRunner().invoke(main, ["report", run, *arguments], env={"GITHUB_STEP_SUMMARY": ""}).stdout
        assert words in shown.replace('name="problem set" value="', "problem set: "), arguments
    for arguments in ([], *(["--by", by] for by in BY)):
        shown = CliRunner().invoke(main, ["report", run, "--format", "csv", *arguments]).stdout
        rows = list(csv.DictReader(shown.splitlines(keepends=True)))
        assert {(row["kgbench"], row["problem_set_sha256"]) for row in rows} == {("0.1.0", SHA256)}, arguments
    shown = CliRunner().invoke(main, ["report", run, "--format", "json"]).stdout
    assert json.loads(shown)["problem_set"] == {"version": "0.1.0", "problems": 3, "sha256": SHA256}
    assert CliRunner().invoke(main, ["compare", run, run]).stdout.count(words) == 2
    assert str(kgbench.load_run(run).problem_set) == words


def test_a_leaderboard_names_each_sources_problem_set(tmp_path: Path) -> None:
    stored(tmp_path, *mixed())
    page = tmp_path / "board.html"
    shown = CliRunner().invoke(main, ["leaderboard", str(tmp_path)]).stdout
    CliRunner().invoke(main, ["leaderboard", str(tmp_path), "--html", str(page)])
    for text in (shown, page.read_text(encoding="utf-8")):
        found = re.findall(r"problem set: version 0\.1\.0, (\d) problems?, sha256 [0-9a-f]{64}", text)
        assert found == ["2", "1"]


def test_citation_file_is_of_this_version() -> None:
    data = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(data)
    assert data["cff-version"] == "1.2.0"
    assert str(data["version"]) == kgbench.__version__
    assert all(set(author) <= {"name", "given-names", "family-names"} for author in data["authors"])


ALL_FORMATS = """\
import hashlib, io, sys
from click.testing import CliRunner
from kgbench.cli.main import main
from kgbench.reports.page import document
for form in sys.argv[2:]:
    done = CliRunner().invoke(main, ["report", sys.argv[1], "--format", form])
    assert done.exit_code == 0, done.output
    print(form, hashlib.sha256(done.stdout_bytes).hexdigest())
document._vega = lambda: ""
for page in ("report", sys.argv[1]), ("leaderboard", sys.argv[1] + "/.."):
    done = CliRunner().invoke(main, [*page, "--html", sys.argv[1] + "/../page.html"])
    assert done.exit_code == 0, done.output
    print(page, hashlib.sha256(open(sys.argv[1] + "/../page.html", "rb").read()).hexdigest())
"""


@pytest.mark.in_turn("kgbench/reports/", turns=3)
def test_a_report_made_twice_is_the_same_to_the_byte(tmp_path: Path) -> None:
    run = stored(tmp_path, *mixed())
    forms = list(FORMATS)
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        forms.remove("parquet")
    made = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "100"}
        env.pop("GITHUB_STEP_SUMMARY", None)
        command = [sys.executable, "-c", ALL_FORMATS, str(run), *forms]
        done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=60, check=True)
        made.append(done.stdout)
    assert made[0] == made[1]
    assert len(made[0].splitlines()) == len(forms) + 2  # a page, and a leaderboard's
