"""A run of another package's kernels on its own problems, as somebody has it who installed both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from tests.plugins import install_acme, kgbench

pytestmark = pytest.mark.torch


@pytest.mark.in_turn("kgbench/core/plugins.py", "tests/plugin/")
@pytest.mark.timeout(180)
def test_an_installed_packages_kernels_are_judged_on_its_problems(tmp_path: Path) -> None:
    site = install_acme(tmp_path)
    asked = ("--source", "acme", "--device", "cpu", "--policy", "off", "--json")
    right = kgbench(site, "run", "--model", "acme", *asked, cwd=tmp_path)
    assert right.returncode == 0, right.stderr
    (row,) = json.loads(right.stdout)["scores"]
    assert (row["source"], row["problems"], row["correct"], row["declared"], row["subset"]) == ("acme", 2, 2, 2, False)
    assert row["own"] == 0
    wrong = kgbench(site, "run", "--model", "acme:wrong", *asked, "--problems", "acme/triple", cwd=tmp_path)
    (row,) = json.loads(wrong.stdout)["scores"]
    assert (row["correct"], row["declared"], row["subset"]) == (0, 2, True)
    checked = kgbench(site, "validate", "acme/triple", "acme/double", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr
