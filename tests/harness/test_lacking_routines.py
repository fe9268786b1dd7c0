"""A library that lacks a routine, or a wrong row, signature or library call, stops its own problem alone. Real runs."""

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
    """Four problems like cublasSdot_v2, each with another routine as its library, and a correct kernel of each."""
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


@pytest.mark.in_turn("kgbench/baselines/")
def test_a_kernel_is_judged_without_its_library_and_told_why(folders: tuple[Path, Path], tmp_path: Path) -> None:
    rows = run(folders[0], f"dir:{folders[1]}", tmp_path)
    assert {name: row["outcome"] for name, row in rows.items()} == dict.fromkeys(ROUTINES, "passed")
    for name, words in WORDS.items():
        assert words in rows[name]["library"]["reason"]
    assert rows["wellknown"]["library"]["reason"] == ""
    assert rows["wellknown"]["library"]["name"].startswith("OpenBLAS")


@pytest.mark.in_turn("kgbench/baselines/")
def test_the_library_in_the_candidates_place_names_the_routine(folders: tuple[Path, Path], tmp_path: Path) -> None:
    rows = run(folders[0], "baseline", tmp_path)
    outcomes = {name: row["outcome"] for name, row in rows.items()}
    assert outcomes == {
        "lacking": "skipped", "misspelt": "runtime error", "unfit": "runtime error", "wellknown": "passed",
    }  # fmt: skip
    for name, words in WORDS.items():
        assert words in rows[name]["reason"]


SROT = Path(__file__).parents[1] / "unit" / "data" / "problems" / "cublas" / "cublasSrot_v2.yaml"
ROTATION = """\
def cublasSrot_v2(n, x, incx, y, incy, c, s):
    a, b = x[:: abs(incx)][:n], y[:: abs(incy)][:n]
    turned = incx * incy < 0
    other, own = (b.flip(0), a.flip(0)) if turned else (b, a)
    new = c * a + s * other, c * b - s * own
    a.copy_(new[0])
    b.copy_(new[1])
"""


def check(folder: Path, kernel: str, *changes: str) -> tuple[int, dict[str, Any]]:
    """Exit code and result of ``kgbench check`` for the plane rotation, whose file is all that knows of it."""
    text = SROT.read_text(encoding="utf-8")
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path = folder / "cublas" / SROT.name
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    (folder / "kernel.py").write_text(kernel, encoding="utf-8")
    asked = ["check", str(folder / "kernel.py"), "cublas/cublasSrot_v2", "--problem-dir", str(folder)]
    done = CliRunner().invoke(main, [*asked, "--policy", "off", "--device", "cpu", "--json"])
    return done.exit_code, json.loads(done.stdout)


def test_a_problem_of_a_new_routine_is_one_file(tmp_path: Path) -> None:
    code, found = check(tmp_path, ROTATION)
    assert (code, found["outcome"]) == (0, "passed")
    assert found["library"]["name"].startswith("OpenBLAS")
    assert found["library"]["notes"]["symbol"] == "scipy_cblas_srot"


def test_a_wrong_kernel_of_a_new_routine_is_not_right(tmp_path: Path) -> None:
    code, found = check(tmp_path, ROTATION.replace("c * b - s", "c * b + s"))
    assert (code, found["outcome"]) == (1, "wrong value")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        # One argument too few, of which entry knows nothing either.
        (
            ("i pi pi x x", "i pi pi x", ", c: float, s: float)", ", c: float)", "{c: 0.6, s: -0.8", "{c: 0.6",
             ", c: 0.0, s: 1.0", "", ", c: 0.28, s: 0.96", "", "incy, c, s)", "incy, c, s=0.5)"),
            "cublasSrot_v2: 'ipipis', the key signature of the problem's file cannot be right: it has 6 letters",
        ),
        (("i pi pi x x", "i pi pi d d"), "argument 6 is 'const float* c' in cuBLAS 13.10, not 'd'"),
    ],
)  # fmt: skip
def test_a_wrong_signature_ends_nobodys_process(tmp_path: Path, changes: tuple[str, ...], words: str) -> None:
    kernel = ROTATION if ", c: float)" not in changes else ROTATION.replace("incy, c, s)", "incy, c, s=0.5)")
    code, found = check(tmp_path, kernel, *changes)
    assert (code, found["outcome"]) == (0, "passed")
    assert words in found["library"]["reason"]
