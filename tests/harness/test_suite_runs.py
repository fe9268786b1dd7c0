"""Runs with a suite: real samples, a kernel that is right for some of them, and going on with what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("expecttest", reason="needs expecttest: pip install 'kgbench[opinfo]'")

from kgbench.cli.main import main
from kgbench.problem.suites import read_suite
from kgbench.store.reader import read_run
from kgbench.torchtools.opinfo import collect

pytestmark = [
    pytest.mark.torch,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("opinfo"),
    pytest.mark.usefixtures("commands_share_it"),
]
PROBLEM = """\
summary: exponential of each element
kind: compute
category: elementwise
entry: "exp(self: Tensor) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self: {access: read, draw: "normal()"}
cases:
  check: ["((T([3], $dtype),), {})"]
  bench: {cpu: ["((T([64], f32),), {})"], gpu24: ["((T([64], f32),), {})"]}
reference: "torch.exp(self)"
tolerance: {rule: rounding}
doc: e to its power
"""
KERNEL = """\
import torch


def exp(self):
    return torch.exp(self) if self.dim() == 0 else torch.zeros_like(self)
"""


def kgbench(folder: Path, *arguments: str) -> Result:
    command = ["run", "--problem-dir", str(folder), "--out", str(folder / "runs")]
    command += ["--policy", "off"]  # these kernels leave the work to PyTorch
    return CliRunner().invoke(main, [*command, *arguments])


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    path = tmp_path / "aten" / "exp.yaml"
    path.parent.mkdir()
    path.write_text(PROBLEM, encoding="utf-8")
    return tmp_path


@pytest.mark.in_turn("kgbench/problem/trace_files.py", "kgbench/problem/torchbench_files.py")
def test_a_wrong_call_does_not_hide_the_others(ground: Path) -> None:
    kernel = ground / "kernels" / "aten" / "exp.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(KERNEL, encoding="utf-8")
    chosen = ("--model", f"dir:{ground / 'kernels'}", "--problems", "aten/exp", "--suite", "opinfo", "--device", "cpu")
    done = kgbench(ground, *chosen, "--json")
    assert done.exit_code == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert (said["run"]["suite"], said["run"]["timed"], said["run"]["asked"]["suite"]) == ("opinfo", False, "opinfo")
    (row,) = said["suite"]
    assert row["samples"] == row["used"] == row["calls"] == 3
    assert (row["correct"], row["wrong"], row["not_run"], row["outcome"]) == (2, 1, 0, "wrong value")
    (stored,) = (ground / "runs").iterdir()
    (result,) = read_run(stored).results
    assert [case.outcome for case in result.cases] == ["wrong value", "passed", "passed"]
    suite = read_suite(stored)
    assert suite is not None
    (calls,) = suite.shares[0].calls.values()
    here = collect("exp", ["default"], ["float32"]).calls["default"]
    assert [each.call for each in calls] == [each.text for each in here], "every process finds the same samples"


def test_a_run_is_gone_on_with_by_its_own_calls(ground: Path) -> None:
    trace = ground / "model.txt"
    trace.write_text("Operator: aten.exp.default\ncnt: 6, ((T([2, 3], f32, stride=(1, 2)),), {})\n", encoding="utf-8")
    done = kgbench(ground, "--model", "reference", "--suite", f"trace:{trace}", "--device", "cpu")
    assert done.exit_code == 0, done.stderr
    assert "aten/exp 1 1 0 1 of 1 6 of 6 passed" in [" ".join(line.split()) for line in done.stdout.splitlines()]
    (stored,) = (ground / "runs").iterdir()
    grouped = CliRunner().invoke(main, ["report", str(stored), "--by", "kind"])
    assert (grouped.exit_code, grouped.stdout) == (2, "")
    assert f"--by kind: the table of suite trace:{trace} has a row per operator; leave --by out" in grouped.stderr
    (stored / "results.jsonl").write_text("", encoding="utf-8")
    trace.unlink()
    again = kgbench(ground, "--resume", "last", "--json")
    assert again.exit_code == 0, again.stderr
    (row,) = json.loads(again.stdout)["suite"]
    assert (row["correct"], row["count_correct"]) == (1, 6)
    other = kgbench(ground, "--resume", "last", "--suite", "opinfo")
    assert "the run was started with --suite trace:" in other.stderr
