"""What the guess about a wrong kernel says, and when it says nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kgbench.core.details.failures import Raised
from kgbench.core.details.outputs import Shape, Strides
from kgbench.core.details.union import Detail
from kgbench.core.details.values import Mismatch, RootMeanSquare
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult
from kgbench.prompts.guess import guess


def mismatch(index: tuple[int, ...], shape: tuple[int, ...], count: int, **more: Any) -> Mismatch:
    fields = {"output": "return", "got": "3", "wanted": "-7", "limit": "1e-06", "dtype": "float32", **more}
    return Mismatch(index=index, shape=shape, wrong_share=count / math.prod(shape), **fields)


def failing(wrong: Detail | None, outcome: Outcome = Outcome.WRONG_VALUE, **variables: Any) -> CaseResult:
    return CaseResult("check-9-float32", "", "check", "float32", variables, outcome, detail=wrong)


def passed(**variables: Any) -> CaseResult:
    return CaseResult("check-1-float32", "", "check", "float32", variables, Outcome.PASSED)


NAN = {"got": "nan", "wanted": "1.5"}
WHOLE = mismatch((0, 0), (4, 5), 20)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (mismatch((36, 0), (37, 29), 29), "the last row is left out"),
        (mismatch((36, 4), (37, 29), 2), "every row but the last is correct"),
        (mismatch((0, 28), (37, 29), 37), "the last column is left out"),
        (mismatch((32, 0), (37, 29), 140), "the last tile, rows from 32 on"),
        (mismatch((128,), (130,), 2), "the last tile, elements from 128 on"),
        (mismatch((0, 0, 31), (2, 3, 32), 6), "the last index of dimension 2"),
        (mismatch((0, 1), (4, 4), 12), "the result is transposed"),
        (mismatch((0, 1), (3, 5), 12), "the result is transposed"),  # 7 stays too: gcd(2, 14) + 1 = 3
        (mismatch((0, 0), (4, 4), 16, **NAN), "overflows"),
        (mismatch((0, 0), (4, 4), 16, **NAN, output="out"), "out holds NaN before the call: perhaps this is never"),
        (mismatch((2, 0), (4, 4), 1, got="0", wanted="nan"), "NaN is expected here"),
        (mismatch((2, 0), (4, 4), 1, got="inf", wanted="7e37"), "overflows"),
        (mismatch((0, 0), (4, 4), 16, got="-4.28039", wanted="-4.28046"), "off by only 0.0016 %: perhaps something"),
        (RootMeanSquare("return", 1e-05, 1e-06, (4, 4), "float32"), "each element"),
        (mismatch((0, 0), (4, 4), 16, got="0"), "exactly 0"),
    ],
)
def test_first_wrong_element_tells(wrong: Detail, words: str) -> None:
    assert words in str(guess(failing(wrong), [], {"out": "write"}))


@pytest.mark.parametrize(
    "wrong",
    [
        WHOLE,
        mismatch((5, 3), (37, 29), 1),
        mismatch((1, 0), (37, 29), 36 * 29),
        mismatch((0, 1), (4, 4), 13),
        mismatch((), (), 1),
        mismatch((0, 0), (4, 4), 16, got="nan", wanted="nan"),
    ],
)
def test_nothing_is_guessed_where_nothing_fits(wrong: Mismatch) -> None:
    assert guess(failing(wrong), [passed()] * 9, {}) is None


def test_beta_is_suspected_only_when_it_is_new() -> None:
    words = "beta is 0.5 and was 0 in every correct case: perhaps beta is ignored"
    assert guess(failing(WHOLE, beta=0.5), [passed(beta=0.0)], {"C": "readwrite"}) == words
    assert guess(failing(WHOLE, beta=0.5), [passed(beta=0.0), passed(beta=1.0)], {}) is None
    assert guess(failing(WHOLE, beta=0.5), [], {}) is None


def test_nan_in_an_updated_output_points_at_beta_or_padding() -> None:
    wrong = mismatch((0, 0), (4, 5), 20, **NAN, output="C")
    access = {"C": "readwrite"}
    assert "beta is 0 and C may hold NaN" in str(guess(failing(wrong, beta=0, pad=0), [], access))
    assert "padding holds NaN and pad is 3" in str(guess(failing(wrong, beta=0, pad=3), [], access))


def test_the_one_thing_that_is_new_is_named_once_enough_is_right() -> None:
    right = [passed(trans="N", k=k, dtype="float16") for k in range(5)]
    case = failing(WHOLE, trans="T", k=9, dtype="float32")
    assert guess(case, right, {}) == "no correct case has trans = T: perhaps that is not handled"
    assert guess(case, right[1:], {}) is None
    assert guess(failing(WHOLE, trans="T", side="R"), [passed(trans="N", side="L")] * 5, {}) is None
    other_overload = [CaseResult("check-1", "Scalar", "check", "float32", {"trans": "N"}, Outcome.PASSED)] * 5
    assert guess(failing(WHOLE, trans="T"), other_overload, {}) is None


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (Shape("return", (4, 3), (3, 4)), "perhaps the result is transposed"),
        (Shape("return", (4, 4), (3, 4)), None),
        (Shape("return", (4, 4), (4, 4)), None),
        (Shape("return", None, (3, 4)), None),
        (Strides("return", (1, 4), (4, 1)), None),
    ],
)
def test_wrong_shape_may_be_the_transposed_one(detail: Detail, words: str | None) -> None:
    assert guess(failing(detail, Outcome.WRONG_SHAPE), [], {}) == words


def test_of_a_hidden_call_no_place_is_said() -> None:
    tile = failing(mismatch((32, 0), (37, 29), 140))
    assert guess(tile, [], {}) == "perhaps the last tile, rows from 32 on, is left out"
    assert guess(tile, [], {}, hidden=True) == "perhaps the last tile of rows is left out"
    deep = failing(mismatch((0, 0, 31), (2, 3, 40), 54))
    assert guess(deep, [], {}, hidden=True) == "perhaps the last tile of dimension 2 is left out"


def test_what_did_not_compute_is_not_guessed_about() -> None:
    assert guess(failing(Raised("ValueError", "no"), Outcome.RUNTIME_ERROR), [], {}) is None
