"""Up to which sizes a prompt promises that a kernel is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.problem.cases import ALWAYS, MOST_ROWS, bind, expand_for_all_devices, sizes_of
from kgbench.problem.cases.sizes import _bound, _shapes
from kgbench.problem.model import Overload, Problem
from kgbench.problem.registry import Registry
from kgbench.prompts.render import PromptOptions, prompt_for
from tests.sampling import looked_at


@pytest.fixture(scope="module")
def problems(shipped: Callable[[Path], Problem]) -> list[Problem]:
    return [shipped(path) for path in Registry().paths.values()]


def one(problems: list[Problem], name: str) -> Problem:
    return next(problem for problem in problems if problem.id == name)


def test_no_call_is_larger_than_its_prompt_says(problems: list[Problem]) -> None:
    """Seeds of which the bounds know nothing. Of a run's share of the problems."""
    these = looked_at("kgbench/problem/cases/")
    for problem in (each for each in problems if each.id in these):
        for overload in problem.judged:
            bounds = sizes_of(overload)
            for seed in ("x", "y"):
                for case in expand_for_all_devices(overload, seed):
                    for argument in bind(overload, case).arguments:
                        words = (problem.id, overload.name, case.id, argument.name)
                        for shape in _shapes(argument):
                            most = bounds.shapes[argument.name][len(shape)]
                            assert all(abs(size) <= bound for size, bound in zip(shape, most, strict=True)), words
                        for spec in argument.specs:
                            if len(spec.shape) in (counts := bounds.elements.get(argument.name, {})):
                                assert math.prod(spec.shape) <= counts[len(spec.shape)], words
                        if type(argument.value) is int:
                            assert abs(argument.value) <= bounds.numbers[argument.name], words


@pytest.mark.parametrize(
    ("size", "drawn", "bound"),
    [
        (0, False, ALWAYS),
        (256, False, ALWAYS),
        (257, False, 260),
        (70_000, False, 70_000),
        (70_001, False, 71_000),
        (MOST_ROWS, False, MOST_ROWS),
        (MOST_ROWS + 1, False, 2_200_000_000),
        (128, True, ALWAYS),
        (5000, True, 10_000),
    ],
)
def test_bounds_have_two_digits_and_tell_nothing_of_small_calls(size: int, drawn: bool, bound: int) -> None:
    assert _bound(size, drawn=drawn) == bound


def test_small_calls_change_no_word(problems: list[Problem]) -> None:
    softmax = one(problems, "aten/softmax")

    def without_random(overload: Overload) -> Overload:
        return replace(overload, fuzz=None)

    other = replace(softmax, overloads=tuple(map(without_random, softmax.overloads)))
    assert prompt_for(other, PromptOptions()) == prompt_for(softmax, PromptOptions())


def test_a_prompt_says_where_not_all_dimensions_are_long_at_once(problems: list[Problem]) -> None:
    text = prompt_for(one(problems, "aten/clone"), PromptOptions()).turns[0].text
    assert f"[{', '.join(['256'] * 9)}] with 1.0e6 elements" in text


def test_a_prompt_says_how_large_a_product_is(problems: list[Problem]) -> None:
    text = prompt_for(one(problems, "cublas/cublasSgemm_v2"), PromptOptions()).turns[0].text
    assert "- sizes, at most: m 2**31 - 1, n 2**31 - 1, k 4100, lda 2**31 - 1, ldb 7.3e8, ldc 2**31 - 1" in text
    assert "mat2: [2**31 - 1, 2100, 2**31 - 1]" in prompt_for(one(problems, "aten/bmm"), PromptOptions()).turns[0].text
