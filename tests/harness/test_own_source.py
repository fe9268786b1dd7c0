"""A source of the user's own: a folder with YAML, and a module beside it for the reference and the library call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kgbench.harness.session.server import ForkServer
from tests.harness.sessions import kgbench, shared

# The run of this module is looked at by several tests.
pytestmark = [
    pytest.mark.torch,
    pytest.mark.xdist_group("own source"),
    pytest.mark.usefixtures("commands_share_it"),
]

LIBRARY = """\
import torch

LIBRARY = "mylib 1.2"


def scaled(self, factor):
    return torch.mul(self, factor)


def reference(self, factor):
    return self * factor
"""
PAUSE = """
calls = 0


def pausing(self, factor):
    global calls
    calls += 1
    if calls == 3:
        time.sleep(3)
    return scaled(self, factor)
"""
RIGHT = "def scale(self, factor):\n    return self * factor\n"
CHEAT = "from mine_library import scaled as scale\n"


def source_of_its_own(folder: Path) -> Path:
    """A skeleton with its edits made: the reference and the library call are functions of a module beside ``mine/``."""
    assert kgbench(folder, "new", "mine", "scale").returncode == 0
    path = folder / "my_problems" / "mine" / "scale.yaml"
    text = re.sub(r"  # EDIT:.*", "", path.read_text(encoding="utf-8"))
    text = text.replace('"torch.mul(self, factor)"', '"mine_library:reference"')
    text = text.replace('cpu: "aten:mul.Scalar"', 'cpu: "mine_library:scaled"')
    path.write_text(text, encoding="utf-8")
    (folder / "my_problems" / "mine_library.py").write_text(LIBRARY, encoding="utf-8")
    (folder / "kernels" / "mine").mkdir(parents=True)
    for sample, kernel in enumerate((RIGHT, CHEAT)):
        (folder / "kernels" / "mine" / f"scale.{sample}.py").write_text(kernel, encoding="utf-8")
    return folder


def judged(folder: Path, model: str, *options: str) -> list[dict[str, Any]]:
    chosen = ("--problem-dir", "my_problems", "--source", "mine", "--model", model, "--policy", "off", *options)
    done = kgbench(folder, "run", *chosen, "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return sorted(rows, key=lambda row: int(row["sample"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_of_its_own(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def rows(folder: Path, fork_server: ForkServer) -> list[dict[str, Any]]:
    """Results of the correct kernel and of the one that imports the library's module."""
    with shared(fork_server):
        return judged(folder, "dir:kernels")


@pytest.mark.in_turn("kgbench/problem/registry.py", turns=3)
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_folder_with_yaml_and_a_module_is_all_a_source_needs(folder: Path, rows: list[dict[str, Any]]) -> None:
    validated = kgbench(folder, "validate", "my_problems")
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert "references run" in validated.stderr
    row = rows[0]
    assert (row["problem"], row["outcome"]) == ("mine/scale", "passed")
    assert row["library"] == {"name": "mylib 1.2", "reason": "", "notes": {}, "failed": False}
    assert row["speedup"]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_candidate_cannot_import_the_module(rows: list[dict[str, Any]]) -> None:
    row = rows[1]
    assert row["outcome"] == "runtime error"
    assert "No module named 'mine_library'" in str(row["reason"])


@pytest.mark.in_turn("kgbench/harness/clock/")
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_library_may_pause_at_any_case(tmp_path: Path) -> None:
    """As one does whose code the driver has to translate for the GPU, part by part."""
    folder = source_of_its_own(tmp_path)
    library = folder / "my_problems" / "mine_library.py"
    library.write_text(LIBRARY.replace("import torch", "import time\n\nimport torch") + PAUSE, encoding="utf-8")
    problem = folder / "my_problems" / "mine" / "scale.yaml"
    problem.write_text(problem.read_text(encoding="utf-8").replace("mine_library:scaled", "mine_library:pausing"))
    (row,) = judged(folder, "baseline", "--deadline", "case=2", "--deadline", "compile=20")
    assert row["outcome"] == "passed", row["reason"]
    assert row["speedup"]
