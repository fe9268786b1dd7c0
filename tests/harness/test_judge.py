"""What a worker says is a hint: whatever it is, the referee answers with an outcome and never breaks."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.cases import expand_cases  # noqa: E402
from kgbench.harness.judge import PASSED, OverloadJudge, PlacedCall  # noqa: E402
from kgbench.loader import load_problem  # noqa: E402
from kgbench.paths import problems_dir  # noqa: E402
from kgbench.types import Outcome  # noqa: E402

TRUE_CLAIM = {
    "type": "Tensor",
    "dtype": "float32",
    "shape": [7, 97],
    "strides": [97, 1],
    "offset": 0,
    "device": "cpu",
    "requires_grad": False,
    "shares": [],
}


@pytest.fixture(scope="module")
def judge() -> OverloadJudge:
    return OverloadJudge(load_problem(problems_dir() / "aten/softmax.yaml").overloads[0], torch.device("cpu"))


@pytest.fixture(scope="module")
def call(judge: OverloadJudge) -> PlacedCall:
    cases = expand_cases(judge.overload, "cpu", None, "seed")
    case = next(case for case in cases if case.dtype == "float32" and case.variables["b"] == 97)
    return judge.place(case, torch.Generator().manual_seed(1))


def test_the_true_claim_passes(judge: OverloadJudge, call: PlacedCall) -> None:
    assert judge._claims(call, {"outputs": [TRUE_CLAIM]}) is PASSED


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ({}, Outcome.REJECTED),
        ({"outputs": 7}, Outcome.REJECTED),
        ({"outputs": []}, Outcome.REJECTED),
        ({"outputs": [7]}, Outcome.REJECTED),
        ({"outputs": [{}]}, Outcome.REJECTED),
        ({"outputs": [TRUE_CLAIM, TRUE_CLAIM]}, Outcome.REJECTED),
        ({"outputs": [{**TRUE_CLAIM, "type": "numpy.ndarray"}]}, Outcome.REJECTED),
        ({"outputs": [{**TRUE_CLAIM, "device": "meta"}]}, Outcome.REJECTED),
        ({"outputs": [{**TRUE_CLAIM, "requires_grad": True}]}, Outcome.REJECTED),
        ({"outputs": [{**TRUE_CLAIM, "shares": [0]}]}, Outcome.REJECTED),
        ({"outputs": [{**TRUE_CLAIM, "dtype": ["float32"]}]}, Outcome.WRONG_DTYPE),
        ({"outputs": [{**TRUE_CLAIM, "shape": 7}]}, Outcome.WRONG_SHAPE),
        ({"outputs": [{**TRUE_CLAIM, "shape": [97, 7]}]}, Outcome.WRONG_SHAPE),
    ],
)
def test_any_other_claim_is_an_outcome(
    judge: OverloadJudge, call: PlacedCall, reply: dict[str, Any], outcome: Outcome
) -> None:
    assert judge._claims(call, reply).outcome is outcome
