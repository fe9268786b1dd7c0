"""A call is asked in one whether anything about it is wrong: that says no just where the questions one by one find
nothing, and it waits for the device once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kgbench.core.paths import problems_dir  # noqa: E402
from kgbench.core.verdicts import PASSED  # noqa: E402
from kgbench.harness.verdict import doubts  # noqa: E402
from kgbench.harness.verdict.inputs import GUARD_BYTES  # noqa: E402
from kgbench.harness.verdict.judge import OverloadJudge  # noqa: E402
from kgbench.harness.verdict.narrow_dtypes import stored_as  # noqa: E402
from kgbench.harness.verdict.placed_call import PlacedCall  # noqa: E402
from kgbench.problem.cases import expand_cases  # noqa: E402
from kgbench.problem.registry import load_problem  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]

PROBLEMS: Final = (
    "aten/softmax",  # rounding
    "aten/add_",  # in place, and promoted
    "aten/mm",  # sums
    "aten/index_select",  # exact
    "cublas/cublasDgemmBatched",  # pointers, padding
    "cublas/cublasCsyrkEx",  # a triangle of complex numbers
    "vllm/scaled_int8_quant",  # codes of real numbers
    "vllm/topk_softmax",  # one form of several right ones
    "vllm/reshape_and_cache",  # nothing returned
)
CASES: Final = 12


def calls(problem: str) -> Iterator[tuple[OverloadJudge, PlacedCall, Any]]:
    """Calls of a problem with a snapshot of each as an honest worker leaves it."""
    for overload in load_problem(problems_dir() / f"{problem}.yaml").judged:
        judge = OverloadJudge(overload, torch.device("cpu"))
        cases = [each for each in expand_cases(overload, "cpu", None, "seed") if each.phase != "large"]
        for case in cases[:: max(1, len(cases) // CASES)]:
            call = judge.place(case, torch.Generator().manual_seed(3))
            if not any(chunk.spec.slots for chunk in call.inputs.chunks.values()):  # whose view is a copy
                yield judge, call, honest(judge, call)


def honest(judge: OverloadJudge, call: PlacedCall) -> Any:
    snapshot = torch.zeros(call.end, dtype=torch.uint8)
    for offset, image in call.inputs.images(0):
        snapshot[offset : offset + image.numel()] = image
    places = judge._outputs(call, snapshot)
    for name, right in judge.answers(call).items():
        typed = stored_as(right.value, places[name].dtype)
        live = judge.live(call, name)
        # What `_outputs` gives of what is returned is a copy.
        if name in call.inputs.chunks:
            places[name].copy_(typed if live is None else torch.where(live, typed, places[name]))
    position = call.out_offset
    for name, spec in zip(call.outputs, call.specs, strict=True):
        typed = stored_as(judge.answers(call)[name].value, getattr(torch, spec.dtype)).contiguous()
        snapshot[position : position + spec.nbytes] = typed.reshape(-1).view(torch.uint8)
        position += -(-spec.nbytes // 256) * 256
    return snapshot


def one_by_one(judge: OverloadJudge, call: PlacedCall, snapshot: Any) -> bool:
    outputs = judge.outputs(call, snapshot)
    return isinstance(outputs, dict) and judge.values(call, outputs) is PASSED


def in_one(judge: OverloadJudge, call: PlacedCall, snapshot: Any) -> bool:
    return not doubts.any_of(judge._doubts(call, snapshot))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_both_say_the_same_of_right_calls_and_of_changed_bytes(problem: str) -> None:
    generator = torch.Generator().manual_seed(5)
    right = wrong = 0
    for judge, call, snapshot in calls(problem):
        assert one_by_one(judge, call, snapshot), call.case.id
        assert in_one(judge, call, snapshot), call.case.id
        chunks = list(call.inputs.chunks.values())
        places = [GUARD_BYTES - 1, call.end - 1, *(chunk.offset + chunk.nbytes - GUARD_BYTES for chunk in chunks)]
        places += [chunk.offset + GUARD_BYTES for chunk in chunks]
        places += torch.randint(0, call.end, (12,), generator=generator).tolist()
        places += torch.randint(call.out_offset, call.end, (6,), generator=generator).tolist() if call.out_bytes else []
        for place in places:
            changed = snapshot.clone()
            changed[place] ^= 0x55
            said = one_by_one(judge, call, changed)
            assert in_one(judge, call, changed) is said, (call.case.id, place)
            right, wrong = right + said, wrong + (not said)
    assert right
    assert wrong


@pytest.mark.parametrize("share", [0.9, 1.1, 3.0])
def test_both_say_the_same_of_errors_near_the_limit(share: float) -> None:
    """Of products, whose elements and root mean square have a limit."""
    said = set()
    for judge, call, snapshot in calls("aten/mm"):
        value = judge._outputs(call, snapshot)["return"]
        if not value.is_floating_point() or value.numel() < 100:
            continue
        answer = judge.answers(call)["return"]
        eps = {torch.float32: 2.0**-24, torch.float64: 2.0**-52}.get(value.dtype, 2.0**-11)
        for factor in (16.0, 96.0):
            typed = (answer.value + share * factor * eps * answer.magnitude).to(value.dtype).contiguous()
            changed = snapshot.clone()
            changed[call.out_offset : call.out_offset + typed.numel() * typed.itemsize] = typed.reshape(-1).view(
                torch.uint8
            )
            passed = one_by_one(judge, call, changed)
            assert in_one(judge, call, changed) is passed
            said.add(passed)
    assert said


def test_a_right_call_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []

    def counted(owner: Any, name: str) -> None:
        before = getattr(owner, name)

        def count(*words: Any, **named: Any) -> Any:
            waits.append(name)
            return before(*words, **named)

        monkeypatch.setattr(owner, name, count)

    prepared = [each for problem in ("cublas/cublasDgemmBatched", "aten/add_") for each in calls(problem)]
    for name in ("__bool__", "item", "tolist", "nonzero", "__int__", "__float__"):
        counted(torch.Tensor, name)
    counted(torch, "equal")
    for judge, call, snapshot in prepared:
        call.known.update(judge.answers(call))
        waits.clear()
        assert judge.judge(call, snapshot) is PASSED
        assert waits == ["__bool__"], call.case.id


def test_weakened_judges_ask_one_by_one() -> None:
    from kgbench.harness.verdict.judge import JudgeParts

    overload = load_problem(problems_dir() / "aten/softmax.yaml").overloads[0]
    assert OverloadJudge(overload, torch.device("cpu")).in_one
    weak = JudgeParts(forbidden_change=lambda *words: None)
    assert not OverloadJudge(overload, torch.device("cpu"), weak).in_one
