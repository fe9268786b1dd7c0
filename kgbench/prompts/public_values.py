"""What an author may be told of values that are wrong: the sort of error, never a value, a limit or a size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kgbench.core.details.values import (
    EXACT,
    Dimensions,
    Impossible,
    Mismatch,
    NoCanonicalForm,
    RootMeanSquare,
    Scalar,
    Seed,
    SeedFault,
    Statistic,
    StatisticalTest,
)
from kgbench.prompts.author import MOST_DIMENSIONS, Author

Told = Iterator[str]
"""Lines without their begin ``What: ``."""
SMALL_INDEX: Final = 31
"""Largest index in a dimension that is told: a larger one would say how large the dimension is at least."""
_FAR: Final = ((3, "a little"), (30, "much"), (1000, "far"))
"""Up to how many times its limit an error is how much larger than rounding explains; never the limit itself."""
_INFINITE: Final = "an infinity"


def mismatch_told(wrong: Mismatch, author: Author) -> Told:
    dimensions = f"{author.count(wrong.shape)}-dimensional, " if wrong.shape else ""
    sort = f"{dimensions}{author.dtype(wrong.dtype)}"
    yield f"{author.output(wrong.output)} ({sort}) at index {_index(wrong.index)} {_error(wrong)}"
    yield f"{_share(wrong.wrong_share)} of its elements are wrong"


def _index(index: Dimensions) -> str:
    shown = (str(each) if each <= SMALL_INDEX else f"over {SMALL_INDEX}" for each in index[:MOST_DIMENSIONS])
    return f"[{', '.join(shown)}]"


def _share(share: float) -> str:
    if share >= 1:
        return "all"
    percent = 100 * share
    return f"{percent:.2g} %" if percent >= 0.01 else "less than 0.01 %"


def _error(wrong: Mismatch) -> str:
    """How wrong the element is, without saying what it is or should be."""
    try:
        got, wanted = complex(wrong.got.replace(" ", "")), complex(wrong.wanted.replace(" ", ""))
    except ValueError:
        return "has a wrong value"  # truth values
    sorts = _sort(got), _sort(wanted)
    if sorts[0] != sorts[1]:
        return f"is {sorts[0]}, expected {sorts[1]}"
    if sorts[0] == _INFINITE:
        return "is infinite as expected, with the wrong sign"
    return _finite_error(abs(got - wanted), abs(wanted), got, wrong.limit)


def _finite_error(error: float, wanted: float, got: complex, limit_text: str) -> str:
    size = "where 0 is expected" if not wanted else f"by about {error / wanted:.0e} of its value"
    if limit_text == EXACT:
        return "is off by 1" if error == 1 else "is 0, expected another number" if not got else f"is off, {size}"
    try:
        times = error / float(limit_text)
    except (ValueError, ZeroDivisionError):
        times = math.inf
    far = next((words for most, words in _FAR if times <= most), "vastly")
    zero = "is exactly 0, and is " if not got and wanted else "is "
    return f"{zero}off {size}, {far} more than rounding explains"


def _sort(value: complex) -> str:
    parts = (value.real, value.imag)
    return "NaN" if any(map(math.isnan, parts)) else _INFINITE if any(map(math.isinf, parts)) else "a finite number"


def together_told(detail: RootMeanSquare, author: Author) -> Told:
    output = author.output(detail.output)
    yield f"each element of {output} is within its limit, all together are further off than by rounding"


def scalar_told(detail: Scalar, author: Author) -> Told:
    yield "returned a wrong value"


def no_form_told(detail: NoCanonicalForm, author: Author) -> Told:
    yield f"{author.output(detail.output)} is not a correct answer in any allowed form"


def impossible_told(detail: Impossible, author: Author) -> Told:
    yield f"{author.output(detail.output)} holds a value that is impossible there"


_SEED_FAULTS: Final = {
    SeedFault.OTHER_NUMBERS: "the generator was seeded as before and gave other numbers: they do not depend on "
    "it alone",
    SeedFault.NOT_ADVANCED: "the next call gave the same numbers again: the generator is not advanced",
    SeedFault.SAME_NUMBERS: "the generator was seeded with another number and gave the same numbers",
    SeedFault.SEEN_BEFORE: "it gave the same numbers as an earlier call, with another seed or later in its sequence",
    SeedFault.OVERLAP: "it gave stretches of numbers again that an earlier call gave: calls are not independent",
    SeedFault.REORDERED: "it gave numbers again that earlier calls gave, in another order: calls are not independent",
}
_TESTS: Final = {
    StatisticalTest.REPEATS: "some run of values occurs twice, in the same order",
    StatisticalTest.DISTRIBUTION: "the values do not have the distribution",
    StatisticalTest.BINS: "some values are too frequent, others too rare",
    StatisticalTest.RESOLUTION: "too few of the values are different: the numbers have too few bits",
    StatisticalTest.BY_ARGUMENT: "some of the elements have another distribution than their arguments ask for",
    StatisticalTest.BLOCKS: "the means of blocks of elements do not vary as random ones do",
    StatisticalTest.PAIRS: "neighbours depend on each other",
    StatisticalTest.LAGS: "values depend on others at a certain distance",
    StatisticalTest.SPREADS: "values depend in size on others at a certain distance",
}


def seed_told(detail: Seed, author: Author) -> Told:
    yield f"{author.output(detail.output)}: {_SEED_FAULTS[detail.fault]}"


def statistic_told(detail: Statistic, author: Author) -> Told:
    if detail.test is StatisticalTest.MEAN:
        said = f"the values are too {'large' if detail.high else 'small'} on average"
    elif detail.test is StatisticalTest.VARIANCE:
        said = f"the values vary too {'much' if detail.high else 'little'}"
    else:
        said = _TESTS[detail.test]
    yield f"{author.output(detail.output)}: {said}"
