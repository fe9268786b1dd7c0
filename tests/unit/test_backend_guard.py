"""Which calls an exported kernel's guard lets through: no torch."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from kgbench.backend.judged import judged_calls
from kgbench.backend.runtime.guard import Judged, Tensor, judged_table, layout
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult
from kgbench.problem.registry import Registry
from tests.unit.made_backends import judged


def tensor(*shape: int, dtype: str = "float32", strides: tuple[int, ...] | None = None, **more: Any) -> Tensor:
    dense, product = [], 1
    for size in reversed(shape):
        dense.insert(0, product)
        product *= max(size, 1)
    return Tensor(dtype, shape, tuple(dense) if strides is None else strides, more.pop("aligned", True), **more)


def guard(*calls: tuple[Any, ...], alike: bool = False) -> Judged:
    """As a package reads it: by way of JSON."""
    table = json.loads(json.dumps(judged_table(calls, alike=alike)))
    return Judged(table, [f"p{number}" for number in range(len(calls[0]))])


@pytest.mark.parametrize(
    ("shape", "strides", "words"),
    [
        ((3, 5), (5, 1), "contiguous"),
        ((), (), "contiguous"),
        ((0, 7), (1, 99), "contiguous"),
        ((1, 5), (77, 1), "contiguous"),
        ((3, 5), (1, 3), "order 1,0"),
        ((3, 5), (8, 1), "order 0,1 gaps"),
        ((3, 5), (10, 2), "order 0,1 steps"),
        ((3, 5), (0, 1), "order 1 repeated 0"),
        ((2, 3, 4), (12, 1, 3), "order 0,2,1"),
    ],
)
def test_a_layout_is_told_by_order_gaps_and_repeats(
    shape: tuple[int, ...], strides: tuple[int, ...], words: str
) -> None:
    assert layout(shape, strides) == words


JUDGED = ((tensor(4, 64), 2, 0.5), (tensor(32, 16), 5, 1.5), (tensor(8, 8, dtype="float16"), 2, 0.5))


@pytest.mark.parametrize(
    "call",
    [
        (tensor(4, 64), 2, 0.5),
        (tensor(8, 32), 3, 1.0),
        (tensor(8, 8, dtype="float16"), 2, 0.5),
    ],
)
def test_what_lies_between_judged_calls_is_let_through(call: tuple[Any, ...]) -> None:
    assert guard(*JUDGED).refusal(call) == ""


@pytest.mark.parametrize(
    "call",
    [
        (tensor(4, 64, dtype="float64"), 2, 0.5),
        (tensor(4, 8, 8), 2, 0.5),
        (tensor(256), 2, 0.5),
        (tensor(8, 32, strides=(1, 8)), 2, 0.5),
        (tensor(8, 32, strides=(40, 1)), 2, 0.5),
        (tensor(8, 32, strides=(0, 1)), 2, 0.5),
        (tensor(8, 32, aligned=False), 2, 0.5),
        (tensor(8, 32, host=True), 2, 0.5),
        (tensor(4, 65), 2, 0.5),
        (tensor(3, 64), 2, 0.5),
        (tensor(32, 32), 2, 0.5),
        (tensor(8, 32), 1, 0.5),
        (tensor(8, 32), 6, 0.5),
        (tensor(8, 32), True, 0.5),
        (tensor(8, 32), None, 0.5),
        (tensor(8, 32), 2.0, 0.5),
        (tensor(8, 32), 2, 1),
        (tensor(8, 32), 2, 2.0),
        (tensor(8, 32), 2, math.nan),
        (tensor(8, 32), 2, math.inf),
        (tensor(4, 64, dtype="float16"), 2, 0.5),
        (tensor(8, 8, dtype="float16"), 3, 0.5),
    ],
    ids=repr,
)
def test_what_lies_outside_is_refused(call: tuple[Any, ...]) -> None:
    assert guard(*JUDGED).refusal(call).startswith("not judged: ")


def test_sizes_are_those_of_any_number_of_dimensions_and_forms_are_not() -> None:
    found = guard((tensor(5, 10, 5),), (tensor(64, 128),))
    assert found.refusal((tensor(8, 8, 64),)) == ""  # as many as were judged in two dimensions
    assert "elements" in found.refusal((tensor(128, 128, 5),))
    assert found.refusal((tensor(2, 2, 2, 2),))


def test_a_judged_number_that_is_not_finite_opens_no_range() -> None:
    found = guard((tensor(4), 1.0), (tensor(4), math.inf), (tensor(4), math.nan))
    assert found.refusal((tensor(4), 1.0)) == ""
    assert found.refusal((tensor(4), 2.0))
    assert found.refusal((tensor(4), math.inf))


def test_what_is_broadcast_is_part_of_the_form() -> None:
    found = guard((tensor(4, 8), tensor(4, 8)), (tensor(1, 8), tensor(1, 8)))
    assert found.refusal((tensor(2, 8), tensor(2, 8))) == ""
    assert found.refusal((tensor(4, 8), tensor(1, 8)))
    assert guard((tensor(4, 8), tensor(1, 8))).refusal((tensor(4, 8), tensor(1, 8))) == ""


def test_texts_truth_values_and_dtypes_are_compared_whole() -> None:
    found = guard((tensor(4), "N", True, "float16"), (tensor(4), "T", False, "float16"))
    assert found.refusal((tensor(4), "N", True, "float16")) == ""
    assert found.refusal((tensor(4), "N", False, "float16"))
    assert found.refusal((tensor(4), "C", True, "float16"))
    assert found.refusal((tensor(4), "N", True, "float32"))


def test_lists_of_tensors_may_be_as_long_as_judged() -> None:
    found = guard(((tensor(4, 4), tensor(2, 4)), 0), ((tensor(4, 4), tensor(2, 4), tensor(3, 4)), 0))
    assert found.refusal(((tensor(3, 4), tensor(3, 4)), 0)) == ""
    assert "tensors" in found.refusal((tuple(tensor(3, 4) for _ in range(9)), 0))
    assert found.refusal(((tensor(3, 4), tensor(3, 4, dtype="float16")), 0))


def test_a_list_that_may_hold_none_is_compared_place_by_place() -> None:
    found = guard((tensor(4, 4), (None, tensor(3, dtype="int64"))))
    assert found.refusal((tensor(4, 4), (None, tensor(3, dtype="int64")))) == ""
    assert found.refusal((tensor(4, 4), (tensor(3, dtype="int64"), None)))


def test_lengths_that_were_always_equal_have_to_be() -> None:
    calls = ((tensor(4, 8), tensor(8)), (tensor(3, 16), tensor(16)))
    assert guard(*calls, alike=True).refusal((tensor(3, 12), tensor(12))) == ""
    assert guard(*calls, alike=True).refusal((tensor(3, 12), tensor(8))).endswith("always equal")
    assert guard(*calls).refusal((tensor(3, 12), tensor(8))) == ""  # ATen says whether shapes fit


@pytest.mark.parametrize("name", ["aten/add", "aten/cat", "aten/index", "cublas/cublasSgemm_v2",
                                  "cublas/cublasSgemmBatched_64", "vllm/rms_norm"])  # fmt: skip
def test_every_judged_call_of_a_problem_is_let_through_and_drawn_ones_come_from_the_verdict(name: str) -> None:
    problem = Registry().find(name)
    result = judged(name, "")
    for overload in problem.judged:
        stored = [CaseResult(**{**each.__dict__, "variables": json.loads(json.dumps(each.variables, default=str))})
                  for each in result.cases]  # fmt: skip
        calls = list(judged_calls(overload, stored, "cpu"))
        own = [each for each in stored if each.overload == overload.name]
        assert len(calls) > len(own) / 2
        found = guard(*calls, alike=problem.source != "aten")
        refused = [found.refusal(call) for call in calls]
        assert not any(refused) or all("inf" in why or "nan" in why for why in refused if why)


def test_only_calls_that_passed_count() -> None:
    overload = Registry().find("aten/mm").judged[0]
    cases = judged("aten/mm", "").cases
    some = [each for each in cases if each.dtype == "float16"]
    wrong = [CaseResult(**{**each.__dict__, "outcome": Outcome.WRONG_VALUE}) for each in some]
    calls = list(judged_calls(overload, [*wrong, *(each for each in cases if each not in some)], "cpu"))
    assert calls
    assert all(each.dtype != "float16" for call in calls for each in call)
