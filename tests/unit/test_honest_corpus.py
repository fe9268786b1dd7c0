"""The honest corpus: which calls are plain, and what counts as held against a kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import honest_corpus
from kgbench.problem.registry import load_problem


@pytest.mark.parametrize(
    ("case", "plain"),
    [
        ("((T([997], $dtype), 0, T([1500], i64)), {})", True),
        ("((T([7, 97], f32), 1.5), {'alpha': 2})", True),
        ("((T([], f32),), {})", False),
        ("((T([0, 3], f32),), {})", False),
        ("((T([13, 9], f32, [1, 16]),), {})", False),
        ("((T([200], c64),), {})", False),
        ("((T([200], f64),), {})", False),
        ("((T([6, 9], f32),), {'memory_format': torch.contiguous_format})", False),
        ({"call": "((T([600], f32),), {})", "values": "special"}, False),
    ],
)
def test_plain_calls(case: object, plain: bool) -> None:
    assert honest_corpus._is_plain(case) is plain


def test_plain_problems_load(tmp_path: Path) -> None:
    done = CliRunner().invoke(honest_corpus.main, ["write", str(tmp_path)], catch_exceptions=False)
    assert "candidates in" in done.output
    written = sorted((tmp_path / "problems" / "plain").glob("*.yaml"))
    assert len(written) >= 60
    assert {path.stem for path in written} == {path.stem for path in (tmp_path / "plain" / "plain").glob("*.py")}
    for path in written[::10]:
        assert load_problem(path).source == "plain"
    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_the_librarys_own_name_is_not_held_against_it(tmp_path: Path) -> None:
    package = {"kind": "package", "name": "flag_gems.ops.mm", "where": "", "why": "", "share": None, "allowed": False}
    observer = {**package, "kind": "observer", "name": "behaves differently when observed"}
    rows = [
        {"problem": "aten/mm", "outcome": "passed", "reason": "", "evidence": [package]},
        {"problem": "aten/bmm", "outcome": "passed", "reason": "", "evidence": [package, observer]},
        {"problem": "aten/cat", "outcome": "rejected", "reason": "policy: too fast", "evidence": []},
        {"problem": "aten/add", "outcome": "wrong value", "reason": "got 1, wanted 2", "evidence": [observer]},
    ]
    results = tmp_path / "results.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = CliRunner().invoke(honest_corpus.main, ["count", str(results)], catch_exceptions=False).output
    assert "4 kernels" in told
    assert "2 with something held against them" in told
    assert "aten/bmm: observer behaves differently" in told
    assert "aten/add: wrong value: got 1, wanted 2" in told
    assert "aten/mm:" not in told
