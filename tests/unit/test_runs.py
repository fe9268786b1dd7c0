"""``kgbench.load_run``, and the score table in every format."""

from __future__ import annotations

import csv
import dataclasses
import importlib
import io
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import kgbench
from kgbench.cli.main import main
from kgbench.core.errors import KgbenchError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import PACKAGE
from kgbench.core.types import Generation, Result
from kgbench.reports.columns import all_columns, columns
from tests.unit.made_results import result, timing
from tests.unit.test_comparison import stored

ASKED = Generation(model_id="m", input_tokens=1, output_tokens=1, usd=0.5)
FOUND = [
    result("aten/a", timing(2.0), generation=ASKED),
    result("aten/b", timing(0.5), generation=ASKED),
    result("vllm/c", outcome=Outcome.REJECTED, generation=ASKED),
    result("vllm/d", timing(8.0), generation=ASKED),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return stored(tmp_path, "20260102T030405Z-ab12cd", FOUND)


def printed(path: Path, *options: str) -> str:
    done = CliRunner().invoke(main, ["report", str(path), *options])
    assert done.exit_code == 0, done.output
    return done.stdout


class TestLoadRun:
    def test_results_and_shares(self, path: Path) -> None:
        run = kgbench.load_run(path)
        assert [each.problem for each in run.results] == ["aten/a", "aten/b", "vllm/c", "vllm/d"]
        assert run.fast_p(1.0) == 0.5
        assert run.fast_p(0) == 0.75
        assert dict(run.fast_p(1.0, by="source")) == {"aten": 0.5, "vllm": 0.5}
        assert dict(run.fast_p(4.0, by="problem")) == {"aten/a": 0.0, "aten/b": 0.0, "vllm/c": 0.0, "vllm/d": 1.0}
        assert run.fast_p(1.0, by="source").index.name == "source"

    def test_table_has_what_the_report_prints(self, path: Path) -> None:
        table = kgbench.load_run(path).table().set_index("source")
        assert list(table.index) == ["aten", "vllm", "micro average", "macro average"]
        assert table.loc["aten", "correct"] == 1.0
        assert table.loc["vllm", "rejected"] == 0.5
        assert table.loc["aten", "speedup"] == pytest.approx(1.0)
        assert table.loc["vllm", "speedup_over_all"] == pytest.approx(math.sqrt(8.0 * 0.001))
        assert table.loc["micro average", "fast_1_low"] <= 0.5 <= table.loc["micro average", "fast_1_high"]
        assert table.loc["vllm", "usd_per_solved"] == 1.0

    def test_table_per_problem(self, path: Path) -> None:
        table = kgbench.load_run(path).table(by="problem").set_index("problem")
        assert table.loc["aten/a", "best_speedup"] == pytest.approx(2.0)
        assert table.loc["vllm/c", "outcomes"] == "1 rejected"
        assert list(table["usd_per_solved"].isna()) == [False, False, True, False]

    def test_speed_in_the_interpreter_is_nan(self, tmp_path: Path) -> None:
        interpreted = [dataclasses.replace(each, interpreted=True) for each in FOUND]
        run = kgbench.load_run(stored(tmp_path, "x", interpreted))
        assert math.isnan(run.fast_p(1.0))
        assert run.fast_p(1.0, by="source").isna().all()
        assert run.fast_p(0) == 0.75

    def test_by_an_id_and_what_is_no_run(self, path: Path) -> None:
        assert kgbench.load_run("ab12", out=path.parent).path == path
        with pytest.raises(KgbenchError, match="there is no run"):
            kgbench.load_run("nothing", out=path.parent)

    def test_unknown_group_is_named(self, path: Path) -> None:
        with pytest.raises(ValueError, match="expected one of source"):
            kgbench.load_run(path).fast_p(1.0, by="operator")


class TestFormats:
    @pytest.mark.parametrize("form", ["table", "md", "latex", "csv", "json"])
    @pytest.mark.parametrize("by", [None, "source", "category", "problem", "kind", "model"])
    def test_a_report_made_twice_is_the_same_to_the_byte(self, path: Path, form: str, by: str | None) -> None:
        options = ("--format", form, *(("--by", by) if by else ()))
        assert printed(path, *options) == printed(path, *options) != ""

    def test_a_group_says_how_many_problems_it_has(self, path: Path) -> None:
        lines = printed(path, "--by", "kind").splitlines()
        head = next(number for number, line in enumerate(lines) if line.startswith("problems"))
        assert lines[head].split()[:3] == ["problems", "count", "correct"]
        assert lines[head + 2].split()[:3] == ["compute", "4", "75.0"]

    def test_markdown(self, path: Path) -> None:
        lines = printed(path, "--format", "md").splitlines()
        assert lines[0].startswith("| source | kinds | problems | correct | fast_1 |")
        assert lines[2].startswith(
            "| aten | compute | 2 (subset) | 100.0 % [100.0 %, 100.0 %] | 50.0 % [0.0 %, 100.0 %] |"
        )
        assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
        assert lines[-1].startswith("problem set: version")

    def test_latex_escapes(self, path: Path) -> None:
        text = printed(path, "--format", "latex")
        assert r"50.0 \% [0.0 \%, 100.0 \%]" in text
        assert r"fast\_1" in text
        assert r"1.00$\times$" in text
        body = [line for line in text.splitlines() if line.endswith(r"\\")]
        assert len({line.count(" & ") for line in body}) == 1

    def test_latex_escapes_what_a_model_is_called(self, tmp_path: Path) -> None:
        found = [dataclasses.replace(each, model="exec:~/a_b ^100% {x} C:\\d") for each in FOUND]
        text = printed(stored(tmp_path, "x", found), "--format", "latex", "--by", "model")
        assert r"exec:\textasciitilde /a\_b \textasciicircum 100\% \{x\} C:\textbackslash d" in text

    def test_csv_by_source_is_the_table_unrounded(self, path: Path) -> None:
        rows = list(csv.DictReader(io.StringIO(printed(path, "--format", "csv", "--by", "source"))))
        assert [row["source"] for row in rows] == ["aten", "vllm", "micro average", "macro average"]
        assert float(rows[1]["speedup_over_all"]) == pytest.approx(math.sqrt(0.008), rel=1e-12)
        names = {"correct_low", "correct_high", "fast_1_point", "speedup_clock_low", "problem_set_sha256"}
        assert names <= rows[0].keys()

    def test_csv_by_problem(self, path: Path) -> None:
        rows = list(csv.DictReader(io.StringIO(printed(path, "--format", "csv", "--by", "problem"))))
        medians = [float(row["median_speedup"] or "nan") for row in rows]
        assert medians == pytest.approx([2.0, 0.5, math.nan, 8.0], nan_ok=True)

    def test_terminal_has_intervals_and_fits_80_columns(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        for by in (None, "category", "problem", "model"):
            text = printed(path, *(("--by", by) if by else ()))
            tables = text.partition("aten: 2 problems")[0]
            assert max(map(len, tables.splitlines())) <= 80
            assert "…" not in tables
        assert "macro average" in printed(path)
        assert "bootstrap over problems and samples" in printed(path)


def test_many_samples_fit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    found: list[Result] = [
        dataclasses.replace(each, sample=sample, outcome=Outcome.PASSED if sample % 2 else each.outcome)
        for each in FOUND
        for sample in range(10)
    ]
    text = printed(stored(tmp_path, "x", found, samples=10)).partition("aten: 2 problems")[0]
    assert "pass@10" in text
    assert "…" not in text


def test_every_column_is_defined_in_the_document(path: Path) -> None:
    words = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
    report = kgbench.load_run(path).report
    names = {column.name for column in (*all_columns(report.rows, "source"), *columns(report.rows))}
    names -= {"source", "kinds", "problems", "usd", "speedup clock low", "speedup clock high"}
    missing = {name for name in names if f"`{name}`" not in words and not name.startswith("fast_")}
    assert not missing


def test_every_function_that_the_document_names_exists() -> None:
    words = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)\.([A-Za-z]\w+)`", words)
    named = [(module, name) for module, name in named if name not in ("md", "py", "jsonl")]
    assert len(named) > 15
    for module, name in named:
        (package,) = [each for each in ("core", "scores", "reports") if (PACKAGE / each / f"{module}.py").exists()]
        assert hasattr(importlib.import_module(f"kgbench.{package}.{module}"), name), f"{module}.{name}"
