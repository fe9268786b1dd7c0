"""A source of the user's own: a folder with YAML, and a module beside it for the reference and the library call."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.torch

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


def kgbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from kgbench.cli.main import main; main()",
    ]
    return subprocess.run(
        [*command, str(ROOT), *arguments], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A skeleton with its edits made: the reference and the library call are functions of a module beside ``mine/``."""
    assert kgbench(tmp_path, "new", "mine", "scale").returncode == 0
    path = tmp_path / "my_problems" / "mine" / "scale.yaml"
    text = re.sub(r"  # EDIT:.*", "", path.read_text(encoding="utf-8"))
    text = text.replace('"torch.mul(self, factor)"', '"mine_library:reference"')
    text = text.replace('cpu: "aten:mul.Scalar"', 'cpu: "mine_library:scaled"')
    path.write_text(text, encoding="utf-8")
    (tmp_path / "my_problems" / "mine_library.py").write_text(LIBRARY, encoding="utf-8")
    for name, kernel in (("right", RIGHT), ("cheat", CHEAT)):
        (tmp_path / name / "mine").mkdir(parents=True)
        (tmp_path / name / "mine" / "scale.py").write_text(kernel, encoding="utf-8")
    return tmp_path


def judged(folder: Path, model: str, *options: str) -> dict[str, object]:
    chosen = ("--problem-dir", "my_problems", "--source", "mine", "--model", model, "--policy", "off", *options)
    done = kgbench(folder, "run", *chosen, "--device", "cpu", "--json")
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["results"]
    assert isinstance(row, dict)
    return row


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_folder_with_yaml_and_a_module_is_all_a_source_needs(folder: Path) -> None:
    validated = kgbench(folder, "validate", "my_problems")
    assert validated.returncode == 0, validated.stdout + validated.stderr
    assert "references run" in validated.stderr
    row = judged(folder, "dir:right")
    assert (row["problem"], row["outcome"]) == ("mine/scale", "passed")
    assert row["library"] == {"name": "mylib 1.2", "reason": "", "notes": {}}
    assert row["speedup"]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_candidate_cannot_import_the_module(folder: Path) -> None:
    row = judged(folder, "dir:cheat")
    assert row["outcome"] == "runtime error"
    assert "No module named 'mine_library'" in str(row["reason"])


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_library_may_pause_at_any_case(folder: Path) -> None:
    """As one does whose code the driver has to translate for the GPU, part by part."""
    library = folder / "my_problems" / "mine_library.py"
    library.write_text(LIBRARY.replace("import torch", "import time\n\nimport torch") + PAUSE, encoding="utf-8")
    problem = folder / "my_problems" / "mine" / "scale.yaml"
    problem.write_text(problem.read_text(encoding="utf-8").replace("mine_library:scaled", "mine_library:pausing"))
    row = judged(folder, "baseline", "--deadline", "case=2", "--deadline", "compile=20")
    assert row["outcome"] == "passed", row["reason"]
    assert row["speedup"]
