"""What a worker says is a hint: whatever it is, the referee answers with an outcome and never breaks."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.core.outcomes import Outcome  # noqa: E402
from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.core.verdicts import PASSED  # noqa: E402
from kgbench.harness.clock.window_inputs import WindowLayout  # noqa: E402
from kgbench.harness.verdict.inputs import GUARD_BYTES  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.placed_call import PlacedCall  # noqa: E402
from kgbench.harness.verdict.views import show_views  # noqa: E402
from kgbench.problem.cases import expand_cases  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

TRUE_CLAIM = {
    "type": "Tensor",
    "dtype": "float32",
    "shape": [7, 97],
    "strides": [97, 1],
    "offset": 0,
    "device": "cpu",
    "requires_grad": False,
    "lazy": [False, False],
    "shares": [],
}


@pytest.fixture(scope="module")
def judge() -> OverloadJudge:
    return OverloadJudge(load_problem(problems_dir() / "aten/softmax.yaml").overloads[0], torch.device("cpu"))


@pytest.fixture(scope="module")
def call(judge: OverloadJudge) -> PlacedCall:
    cases = expand_cases(judge.overload, "cpu", None, "seed")
    case = next(case for case in cases if case.dtype == "float32" and case.variables["self_shape"] == (7, 97))
    return judge.place(case, torch.Generator().manual_seed(1))


@pytest.fixture
def pointers() -> OverloadJudge:
    return OverloadJudge(
        load_problem(problems_dir() / "cublas/cublasSgemmBatched_64.yaml").overloads[0], torch.device("cpu")
    )


def shuffled_call(judge: OverloadJudge, number: int = 0) -> PlacedCall:
    """The call of that number in a window."""
    cases = expand_cases(judge.overload, "cpu", None, "seed")
    case = next(case for case in cases if case.variables["shuffled"] and case.variables["batch"] == 7)
    generator = torch.Generator().manual_seed(1)
    return WindowLayout(judge, judge.place(case, generator)).draw(number + 1, generator).call(number)


def memory(call: PlacedCall, base: int) -> Any:
    """What the call's inputs look like in a worker's buffer that lies at ``base``."""
    bytes_ = torch.zeros(call.end, dtype=torch.uint8)
    for offset, image in call.inputs.images(base):
        bytes_[offset : offset + image.numel()] = image
    return bytes_


def test_each_pointer_leads_to_its_matrix(pointers: OverloadJudge) -> None:
    call = shuffled_call(pointers, 2)
    start = call.inputs.start
    assert start > 0
    bytes_, base = memory(call, 1 << 40), 1 << 40
    views = call.inputs.arguments()
    for name in ("Aarray", "Barray", "Carray"):
        args, _ = call.inputs.encoded()
        place = args[[a.name for a in call.inputs.bound.arguments].index(name)]["tensor"]
        assert place[2:] == ["int64", [7], [1], 0]
        addresses = bytes_[place[0] : place[0] + place[1]].view(torch.int64)
        assert len({int(step) for step in addresses.diff()}) > 1
        for address, matrix in zip(addresses.tolist(), views[name], strict=True):
            rows, columns = matrix.shape
            found = bytes_[address - base :][: 4 * rows * columns].view(torch.float32)
            assert torch.equal(found.reshape(columns, rows).T, matrix)


@pytest.mark.parametrize("where", [-1, 0, 6 * 8 + 7, 7 * 8])
def test_an_array_of_pointers_must_stay_as_it_is(pointers: OverloadJudge, where: int) -> None:
    call, base = shuffled_call(pointers), 1 << 40
    pointers.bases.add(base)
    snapshot = memory(call, base)
    expected = pointers.reference.expected(call.inputs.arguments(), ("Carray",))["Carray"].value
    chunk = call.inputs.chunks["Carray"]
    slots = list(chunk.spec.slots)
    storage = snapshot[chunk.offset + GUARD_BYTES :][: chunk.storage_bytes].view(torch.float32)
    storage.as_strided(chunk.spec.shape, chunk.spec.strides)[slots] = expected.float()
    assert pointers.judge(call, snapshot) is PASSED
    snapshot[call.inputs.pointers["Barray"].offset + GUARD_BYTES + where] ^= 1
    verdict = pointers.judge(call, snapshot)
    assert verdict.outcome is Outcome.INPUT_CHANGED
    assert "array of pointers 'Barray'" in verdict.reason


def test_the_true_claim_passes(judge: OverloadJudge, call: PlacedCall) -> None:
    assert judge.contract.check(call, {"outputs": [TRUE_CLAIM]}) is PASSED


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
    assert judge.contract.check(call, reply).outcome is outcome


# --- views ---


@pytest.fixture(scope="module")
def transposed() -> OverloadJudge:
    return OverloadJudge(load_problem(problems_dir() / "aten/t.yaml").overloads[0], torch.device("cpu"))


def view_call(judge: OverloadJudge) -> PlacedCall:
    """T([37, 53], f32)"""
    cases = expand_cases(judge.overload, "cpu", None, "seed")
    case = next(case for case in cases if case.dtype == "float32" and case.variables["self_shape"] == (37, 53))
    return judge.place(case, torch.Generator().manual_seed(3))


def view_claim(call: PlacedCall, **changes: Any) -> dict[str, Any]:
    at = call.inputs.chunks["self"].offset + GUARD_BYTES
    claim = {**TRUE_CLAIM, "shape": [53, 37], "strides": [1, 53], "at": at, "shares": [0], "lazy": [False, False]}
    return {**claim, **changes}


def test_a_view_is_read_by_the_referee_alone(transposed: OverloadJudge) -> None:
    call = view_call(transposed)
    snapshot = memory(call, 0)
    claim = view_claim(call)
    assert transposed.contract.check(call, {"outputs": [claim]}) is PASSED
    snapshot[call.out_offset :] = 0
    show_views(call, [claim], snapshot)
    assert transposed.judge(call, snapshot) is PASSED


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"at": 0}, Outcome.WRONG_VALUE),
        ({"at": None}, Outcome.WRONG_VALUE),
        ({"at": -(1 << 70)}, Outcome.WRONG_VALUE),
        ({"at": GUARD_BYTES + 4}, Outcome.WRONG_SHAPE),
        ({"strides": [37, 1]}, Outcome.WRONG_SHAPE),
        ({"strides": [1.0, 53.0]}, Outcome.REJECTED),
    ],
)
def test_a_view_that_lies_elsewhere_is_none(
    transposed: OverloadJudge, changes: dict[str, Any], outcome: Outcome
) -> None:
    call = view_call(transposed)
    assert transposed.contract.check(call, {"outputs": [view_claim(call, **changes)]}).outcome is outcome


def test_a_claim_that_leads_elsewhere_shows_other_values(transposed: OverloadJudge) -> None:
    """Were it not for the contract: what stands there is read, whatever the worker says of it."""
    call = view_call(transposed)
    snapshot = memory(call, 0)
    show_views(call, [view_claim(call, strides=[1, 52])], snapshot)
    assert transposed.judge(call, snapshot).outcome is Outcome.WRONG_VALUE


def test_a_new_output_lies_in_no_input(judge: OverloadJudge, call: PlacedCall) -> None:
    verdict = judge.contract.check(call, {"outputs": [{**TRUE_CLAIM, "at": call.inputs.start + GUARD_BYTES}]})
    assert "in the memory of an input" in verdict.reason
