"""docs/case-kinds.md is what the problems' files say, and each kind is recognised where it is and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgbench.core.paths import problems_dir
from kgbench.problem.case_kinds.facts import Facts
from kgbench.problem.case_kinds.kinds import KINDS
from kgbench.problem.case_kinds.reasons import REASONS
from kgbench.problem.case_kinds.table import document, open_fields
from kgbench.problem.registry import load_problem

ROOT = Path(__file__).parents[2]
STILL_OPEN = 0
"""Fields without a case and without a reason. It falls with every case that is written; it never rises."""
BARE = """\
summary: scaled
kind: compute
category: test
entry: "scaled(self: Tensor, factor: float, flag: bool = False) -> Tensor"
dtypes: {required: [float32]}
defaults: {factor: 2.0, flag: false, step: 1, offset: 0}
arguments:
  self:
    access: read
    shape: "(m, n)"
    strides: "(n * step, step)"
    offset: "offset"
    draw: {default: "normal()", other: "DRAW"}
  factor: {value: "factor"}
  flag: {value: "flag"}
cases:
  check: [{m: 2, n: 4}, CASE]
  fuzz: {count: 1, draw: {m: {range: [1, 4]}, n: {range: [1, 4]}}}
  bench: {cpu: [{m: 16, n: 32}], gpu24: [{m: 16, n: 32}]}
baseline: {cuda: "aten:mul.Scalar", cpu: "aten:mul.Scalar"}
reference: "torch.mul(self, factor)"
tolerance: {rule: rounding, ulps: 2}
cost: {flops: "m * n", bytes: "8 * m * n"}
doc: Scaled.
"""
CASES = {
    "empty": ("{m: 0, n: 4}", "normal()"),
    "one": ("{m: 1, n: 1}", "normal()"),
    "odd": ("{m: 37, n: 4}", "normal()"),
    "gaps": ("{m: 2, n: 4, step: 3}", "normal()"),
    "offset": ("{m: 2, n: 4, offset: 1}", "normal()"),
    "grid": ("{m: 70000, n: 2}", "normal()"),
    "2³¹": ("{m: 2, n: 2, step: 2147483649}", "normal()"),
    "grid each": ("{m: 70000, n: 2}", "normal()"),
    "rows 2³¹": ("{m: 2, n: 2147483649}", "normal()"),
    "2³¹ − 1": ("{m: 1, n: 2147483647}", "normal()"),
    "outer": ("{m: 1, n: 2147483649, values: other}", "outer(1, 2)"),
    "nan alone": ("{m: 2, n: 4, values: other}", "few((inf, nan))"),
    "nan": ("{m: 2, n: 4, values: other}", "choice((1.0, nan))"),
    "denormal": ("{m: 2, n: 4, values: other}", "normal(0, 1.0e-40)"),
    "large": ("{m: 2, n: 4, values: other}", "normal(0, 1000)"),
    "small": ("{m: 2, n: 4, values: other}", "uniform(0, 0.001)"),
    "apart": ("{m: 2, n: 4, values: other, dtype: complex64}", "magnitudes(1.0e-9, 1.0e9)"),
    "close": ("{m: 2, n: 4, values: other}", "normal(1000, 1)"),
    "equal": ("{m: 2, n: 4, values: other}", "signs()"),
    "number 0": ("{m: 2, n: 4, factor: 0.0}", "normal()"),
    "number < 0": ("{m: 2, n: 4, factor: -1.5}", "normal()"),
    "number large": ("{m: 2, n: 4, factor: 1000.0}", "normal()"),
    "number small": ("{m: 2, n: 4, factor: 1.0e-5}", "normal()"),
    "flags": ("{m: 2, n: 4, flag: true}", "normal()"),
}
"""By kind, the one case of it and how its tensor is drawn."""


def has(folder: Path, case: str, draw: str) -> set[str]:
    path = folder / "aten" / "scaled.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(BARE.replace("CASE", case).replace("DRAW", draw), encoding="utf-8")
    facts = Facts.of(load_problem(path))
    return {kind.name for kind in KINDS if kind.has(facts)}


def test_the_document_is_current_and_no_new_field_is_empty_without_a_reason() -> None:
    written = (ROOT / "docs" / "case-kinds.md").read_text(encoding="utf-8")
    assert written == document(), "write it anew: python -m kgbench.problem.case_kinds > docs/case-kinds.md"
    still_open = sum(map(len, open_fields(written).values()))
    assert still_open == STILL_OPEN, "a case was written: lower the number; else write one"


@pytest.mark.parametrize("kind", CASES)
def test_a_kind_is_where_its_case_is(tmp_path: Path, kind: str) -> None:
    usual = has(tmp_path, "{m: 4, n: 4}", "normal()")
    assert kind not in usual
    assert kind in has(tmp_path, *CASES[kind])


@pytest.mark.parametrize(
    ("problem", "kind", "calls"),
    [
        ("aten/copy_", "number 2³¹", "T([2, 1], i8)"),
        ("cublas/cublasCgemv_v2", "inc < −2²⁹", "incx: -550000001"),
    ],
)
def test_without_its_calls_a_problem_has_no_case_of_the_kind(
    tmp_path: Path, problem: str, kind: str, calls: str
) -> None:
    source, name = problem.split("/")
    path = problems_dir() / source / f"{name}.yaml"
    bare = tmp_path / source / path.name
    bare.parent.mkdir()
    bare.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if calls not in line))
    recognised = next(each for each in KINDS if each.name == kind)
    assert recognised.has(Facts.of(load_problem(path)))
    assert not recognised.has(Facts.of(load_problem(bare)))


def test_reasons_name_kinds_that_there_are() -> None:
    names = {kind.name for kind in KINDS}
    assert all(set(each.kinds) <= names for each in REASONS)
    assert len({kind.name for kind in KINDS}) == len(KINDS)
