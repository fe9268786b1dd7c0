"""Problems of 8-bit codes through real processes: fp8 inputs, poison, live masks, the reference and its mutants."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Session
from kgbench.problem.mutants import MUTANTS
from kgbench.problem.registry import load_problem
from kgbench.selftest import mutants as mutation

pytestmark = pytest.mark.torch

PROBLEM = """\
summary: rows as codes of 8 bits, with a scale for each row
kind: creation
category: test
entry: "codes(out: Tensor, scales: Tensor, self: Tensor, other: Tensor) -> None"
dtypes: {required: [int8, float8_e4m3fn, float8_e5m2]}
arguments:
  out: {access: write, shape: "(m, n)", strides: "(n + pad, 1)", live: "j > 0"}
  scales: {access: write, shape: "(m,)", dtype: "float32"}
  self: {access: read, shape: "(m, n)", dtype: "float32", draw: "normal()"}
  other:
    access: read
    shape: "(m, n)"
    dtype: "float8_e4m3fn"
    strides: "(n + pad, 1)"
    draw: {default: "normal(0, 200)", special: "special()"}
cases:
  check:
    - {m: 5, n: 33, pad: 0}
    - {m: 4, n: 150, pad: 7}
    - {m: 3, n: 40, pad: 0, values: special}
reference: |
  def reference(out, scales, self, other):
      scale = self.abs().amax(dim=1) / 100
      return {"out": (self + other / 300) / scale[:, None], "scales": scale}
tolerance: {rule: quantize, ulps: 4, compute: "'float32'"}
doc: Codes.
"""

RIGHT = """\
import torch

def codes(out, scales, self, other):
    scales.copy_(self.abs().amax(dim=1) / 100)
    value = (self + other.float() / 300) / scales[:, None]
    if out.dtype == torch.int8:
        value = value.round().clamp(-128, 127)
    else:
        value = value.clamp(-torch.finfo(out.dtype).max, torch.finfo(out.dtype).max)
    out[:, 1:] = value.to(out.dtype)[:, 1:]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "mine" / "codes.yaml"
    found.parent.mkdir()
    found.write_text(PROBLEM, encoding="utf-8")
    return found


def test_a_kernel_in_float32_is_right_and_one_that_cuts_off_is_not(session: Session, path: Path) -> None:
    right = session.evaluate(Job(load_problem(path), "test", source=RIGHT))
    assert right.outcome is Outcome.PASSED, right.reason
    wrong = session.evaluate(Job(load_problem(path), "test", source=RIGHT.replace(".round()", ".trunc()")))
    assert wrong.outcome is Outcome.WRONG_VALUE
    assert "int8" in wrong.reason + str(wrong.cases)


@pytest.mark.parametrize("mutant", [name for name, mutant in MUTANTS.items() if not mutant.source])
def test_no_mutant_of_codes_breaks_or_survives(session: Session, path: Path, mutant: str) -> None:
    (row,) = mutation.rows(session.evaluate, path, "mine/codes", mutant)
    assert row.state in (mutation.CAUGHT, mutation.NOT_APPLICABLE), row
