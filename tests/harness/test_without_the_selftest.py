"""A benchmark needs nothing of the self-test: candidates are judged and timed where that package is not installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kgbench.core.paths import PACKAGE, problems_dir

pytestmark = [pytest.mark.torch, pytest.mark.in_turn("kgbench/selftest/", together=True)]

NEG = """
import torch

def neg(self):
    return {}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with kgbench in it, as a wheel that leaves the self-test out has it."""
    root = tmp_path_factory.mktemp("installed")
    # Bytecode comes along where there is some: compiling all modules anew takes each process seconds.
    leave_out = shutil.ignore_patterns("selftest", "examples")
    shutil.copytree(PACKAGE, root / "kgbench", ignore=leave_out, symlinks=True)
    shutil.copytree(problems_dir() / "aten", root / "kgbench" / "problems" / "aten")
    # An editable install would bring the checkout's modules in by a finder of its own.
    without = "import sys; sys.meta_path[:] = [each for each in sys.meta_path if 'editable' not in repr(each).lower()]"
    (root / "sitecustomize.py").write_text(without + "\n", encoding="utf-8")
    return root


def python(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=240)


def test_it_is_absent(installed: Path) -> None:
    done = python(installed, "-c", "import kgbench.harness as h; print(h.__file__); import kgbench.selftest")
    assert done.stdout.strip().startswith(str(installed))
    assert "No module named 'kgbench.selftest'" in done.stderr


@pytest.mark.parametrize(
    ("answer", "outcome", "code"), [("torch.neg(self)", "passed", 0), ("self + 1", "wrong value", 1)]
)
def test_a_candidate_is_judged(installed: Path, tmp_path: Path, answer: str, outcome: str, code: int) -> None:
    kernel = tmp_path / "neg.py"
    kernel.write_text(NEG.format(answer), encoding="utf-8")
    done = python(
        installed, "-m", "kgbench", "check", str(kernel), "aten/neg", "--device", "cpu", "--policy", "off", "--json"
    )
    assert done.returncode == code, done.stderr[-2000:]
    assert json.loads(done.stdout)["outcome"] == outcome
