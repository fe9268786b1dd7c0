"""A library that lacks a routine, or a wrong row in the table of routines, stops its own problem alone. Real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")
pytest.importorskip("scipy_openblas32")

from kgbench.cli.main import main
from kgbench.problem.registry import Registry

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("commands_share_it")]
DOT = "cublas/cublasSdot_v2"
ROUTINES = {
    "lacking": "cublasCsyr2_v2",  # OpenBLAS has none.
    "misspelt": "cublasSdott_v2",
    "unfit": "cublasSaxpy_v2",  # Its second argument is a number.
    "wellknown": "cublasSdot_v2",
}
WORDS = {
    "lacking": "has no scipy_cblas_csyr2; pip install -U scipy-openblas32",
    "misspelt": "cublasSdott_v2: no signature is known; add its row to FAMILIES in baselines/routines.py",
    "unfit": "cublasSaxpy_v2: the entry's arguments do not fit 'ispipi', its row in baselines/routines.py",
}
KERNEL = """\
def {name}(n, x, incx, y, incy, result):
    left, right = x[:: abs(incx)][:n].double(), y[:: abs(incy)][:n].double()
    result[0] = ((left.flip(0) if incx < 0 else left) * (right.flip(0) if incy < 0 else right)).sum()
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Four problems like cublasSdot_v2, each with another routine as its library, and a right kernel of each."""
    problems, kernels = tmp_path_factory.mktemp("problems"), tmp_path_factory.mktemp("kernels")
    text = Registry().paths[DOT].read_text()
    for folder in (problems, kernels):
        (folder / "mine").mkdir()
    for name, routine in ROUTINES.items():
        own = text.replace('entry: "cublasSdot_v2(', f'entry: "{name}(')
        own += f'baseline: {{cuda: "cublas:{routine}", cpu: "openblas:{routine}"}}\n'
        (problems / "mine" / f"{name}.yaml").write_text(own)
        (kernels / "mine" / f"{name}.py").write_text(KERNEL.format(name=name))
    return problems, kernels


def run(problems: Path, model: str, out: Path) -> dict[str, dict[str, Any]]:
    """Rows of a run by the problem's own name."""
    asked = ["run", "--problem-dir", str(problems), "--source", "mine", "--model", model, "--device", "cpu"]
    asked += ["--policy", "off"]  # these kernels leave the work to PyTorch
    done = CliRunner().invoke(main, [*asked, "--out", str(out)])
    assert done.exit_code == 0, done.output
    (results,) = out.glob("*/results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    return {row["problem"].removeprefix("mine/"): row for row in rows}


def test_a_kernel_is_judged_without_its_library_and_told_why(folders: tuple[Path, Path], tmp_path: Path) -> None:
    rows = run(folders[0], f"dir:{folders[1]}", tmp_path)
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(ROUTINES, "passed")
    for name, words in WORDS.items():
        assert words in rows[name]["library"]["reason"]
    assert rows["wellknown"]["library"]["reason"] == ""
    assert rows["wellknown"]["library"]["name"].startswith("OpenBLAS")


def test_the_library_in_the_candidates_place_names_the_routine(folders: tuple[Path, Path], tmp_path: Path) -> None:
    rows = run(folders[0], "baseline", tmp_path)
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes == {
        "lacking": "skipped", "misspelt": "runtime error", "unfit": "runtime error", "wellknown": "passed",
    }  # fmt: skip
    for name, words in WORDS.items():
        assert words in rows[name]["reason"]
