"""Tidy data: every sample has a row, every column is documented, and both formats hold the same values."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from kgbench.cli.main import main
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Generation, Result
from kgbench.reports.export import tidy
from kgbench.store.writer import RunStore
from tests.unit.made_results import LIBRARY, bench, result, timing

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "data.md"
HOSTILE = "=1+1,\"\x1b[31m\r\n\0 ,'\ud800"


def stored(out: Path, *results: Result, **changes: Any) -> Path:
    """A finished run of three problems with two samples each."""
    kinds = {"aten/mm": "compute", "aten/t": "view", "x/y": "compute"}
    problems = [{"id": name, "kind": kind} for name, kind in kinds.items()]
    info = {
        "problems": problems, "samples": 2, "model": "m", "kgbench": "0.1.0", "problem_set_sha256": "ab" * 32,
        "device": {"kind": "cuda", "name": "NVIDIA H200", "driver": "580.82", "versions": {"torch": "2.11"}},
    }  # fmt: skip
    store = RunStore.create(out, "20260102T030405Z-ab12cd", {**info, **changes}, seed="s")
    for each in results:
        store.append(each)
    store.finish("finished", finished="2026-01-02T04:00:00+00:00", seed="s")
    return store.path


def mixed() -> tuple[Result, ...]:
    """Right with two rounds, hostile, and one that ran in the interpreter; of x/y there is nothing."""
    check = CaseResult("check-1", "out", "check", "float32", {"n": 3, "flag": None}, Outcome.PASSED, seconds=0.5)
    cases = (check, bench(timing(1.5)), bench(timing(float("inf"))))
    generation = Generation(model_id="m-1", input_tokens=10, usd=0.25)
    return (
        result("aten/mm", timing(0.5), round=0),
        Result("aten/mm", "m", 0, Outcome.PASSED, cases=cases, library=LIBRARY, round=1, generation=generation),
        Result("aten/mm", "m", 1, Outcome.COMPILE_ERROR, reason=HOSTILE),
        result("aten/t", timing(2.0), interpreted=True),
    )


def result_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def written(run: Path, form: str) -> bytes:
    done = CliRunner().invoke(main, ["report", str(run), "--format", form])
    assert done.exit_code == 0, done.output
    return done.stdout_bytes


def test_every_sample_has_a_row(tmp_path: Path) -> None:
    found = result_of(written(stored(tmp_path, *mixed()), "csv").decode())
    outcomes = [
        (row["problem"], row["sample"], row["round"], row["scored"], row["outcome"], row["case"]) for row in found
    ]
    assert outcomes == [
        ("aten/mm", "0", "0", "false", "passed", "bench[0]"),
        ("aten/mm", "0", "1", "true", "passed", "check-1"),
        ("aten/mm", "0", "1", "true", "passed", "bench[0]"),
        ("aten/mm", "0", "1", "true", "passed", "bench[0]"),
        ("aten/mm", "1", "0", "true", "compile error", ""),
        ("aten/t", "0", "0", "true", "passed", "bench[0]"),
        ("aten/t", "1", "", "true", "not evaluated", ""),
        ("x/y", "0", "", "true", "not evaluated", ""),
        ("x/y", "1", "", "true", "not evaluated", ""),
    ]
    assert found[2]["speedup"] == "1.5"
    assert found[3]["speedup"] == "inf"
    assert found[5]["speedup"] == "", "speed in Triton's interpreter means nothing"
    assert (found[1]["usd"], found[1]["input_tokens"], found[1]["output_tokens"]) == ("0.25", "10", "")
    assert json.loads(found[1]["variables"]) == {"n": 3, "flag": None}
    assert found[4]["reason"].startswith("=1+1,")
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", found[4]["reason"])


def test_the_document_has_the_columns_that_are_written(tmp_path: Path) -> None:
    header = written(stored(tmp_path, *mixed()), "csv").decode().partition("\n")[0].split(",")
    told = re.findall(r"^\| `(\w+)` \| (\w+) \| (\S*) ?\| (.+) \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    columns = [tuple(entry) for entry in told if entry[1] in ("text", "integer", "number", "truth")]
    assert [name for name, *_ in columns] == header
    assert columns == [(each.name, each.type, each.unit, each.meaning) for each in tidy.COLUMNS]


def test_pandas_reads_the_csv_with_the_documented_types(tmp_path: Path) -> None:
    read = pd.read_csv(io.BytesIO(written(stored(tmp_path, *mixed()), "csv")))
    kinds = {"number": "f", "integer": "if", "truth": "bO"}
    for column in tidy.COLUMNS:
        if column.type in kinds and read[column.name].notna().any():
            assert read[column.name].dtype.kind in kinds[column.type], column.name


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json", "--format", "csv"], "--json and --format csv are two reports"),
        (["--html", "a.html", "--cite"], "--html and --cite are two reports"),
        (["--html", "a.html", "--by", "kind"], "leave --by out"),
        (["--html", "a.html", "--to", "b"], "leave --to out"),
        (["--by", "kind", "--format", "junit"], "--format junit has no table for --by to make"),
        (["--by", "kind", "--cite"], "--cite has no table"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, options: list[str], words: str) -> None:
    done = CliRunner().invoke(main, ["report", str(stored(tmp_path)), *options])
    assert done.exit_code == 2
    assert words in done.stderr


def test_parquet_without_pyarrow_says_how_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    file = tmp_path / "a.parquet"
    done = CliRunner().invoke(main, ["report", str(stored(tmp_path)), "--format", "parquet", "--to", str(file)])
    assert "KGB186" in done.stderr
    assert "pip install 'kgbench[parquet]'" in done.stderr
    assert not file.exists()


def test_parquet_holds_what_the_csv_holds(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="a machine with pyarrow reads it back: pip install 'kgbench[parquet]'")
    run = stored(tmp_path, *mixed())
    read = pd.read_parquet(io.BytesIO(written(run, "parquet")))
    rows = result_of(written(run, "csv").decode())
    assert list(read.columns) == list(rows[0])
    for number, row in enumerate(rows):
        for name, text in row.items():
            value = read[name][number]
            told = "" if pd.isna(value) else str(value)
            told = told.lower() if text in ("true", "false") else told
            assert told == text, (name, number)
    import pyarrow.parquet

    types = {field.name: str(field.type) for field in pyarrow.parquet.read_schema(io.BytesIO(written(run, "parquet")))}
    wanted = {"text": "string", "integer": "int64", "number": "double", "truth": "bool"}
    assert {name: kind.removeprefix("large_") for name, kind in types.items()} == {
        column.name: wanted[column.type] for column in tidy.COLUMNS
    }, "a column without a value has its type, too"


def test_a_run_of_nothing_has_a_header(tmp_path: Path) -> None:
    assert len(written(stored(tmp_path, problems=[]), "csv").splitlines()) == 1
