"""Timed shapes in the values of check cases: a candidate is held to what the library gets right there itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.harness.session.session import Job, Settings
from kgbench.problem.registry import load_problem
from tests.harness.sessions import SessionOf

pytestmark = [pytest.mark.torch, pytest.mark.timeout(120)]

PROBLEM: Final = """\
summary: the sum of each row
kind: compute
category: reduction
entry: "total(self: Tensor) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self:
    access: read
    shape: "(m, n)"
    draw:
      default: "uniform(1, 2)"
      huge: "choice((2.0e38, -2.0e38))"
cases:
  check: [{m: 1, n: 1}, {m: 7, n: 97}, {m: 30, n: 1, values: huge}]
  fuzz: {count: 2, draw: {m: {range: [1, 40]}, n: {range: [1, 300]}}}
  bench: {cpu: [{m: 512, n: 256}], gpu24: [{m: 512, n: 256}]}
baseline: {cuda: "tests.harness.trusted_functions:LIBRARY", cpu: "tests.harness.trusted_functions:LIBRARY"}
reference: "tests.harness.trusted_functions:exact_sum"
tolerance: {rule: rounding, ulps: 64}
cost: {flops: "m * n", bytes: "itemsize * m * n"}
doc: "out_i is the sum of row i"
"""
IN_FLOAT32: Final = "def total(self):\n    return self.sum(1)\n"


@pytest.mark.parametrize(
    ("library", "wanted"), [("sum_in_float32", Outcome.PASSED), ("sum_in_float64", Outcome.WRONG_VALUE)]
)
def test_who_fails_beside_the_library_is_let_go(
    library: str, wanted: Outcome, session_of: SessionOf, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    problem = tmp_path / "mine/total.yaml"
    problem.write_text(PROBLEM.replace("LIBRARY", library), encoding="utf-8")
    with session_of(Settings(device="cpu")) as session:
        result = session.evaluate(Job(load_problem(problem), "test", 0, IN_FLOAT32))
    assert result.outcome is wanted, result.reason
    assert result.library is not None
    assert result.library.name
