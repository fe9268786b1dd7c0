"""Values that are wrong: of tensors, of Python values, of random operators.

``output`` is the name of the written argument, or ``return``, ``return[i]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

EXACT: Final = "exact"
"""The limit of an element that must be equal."""

Dimensions = tuple[int, ...]
"""A shape, strides or an index."""


@dataclass(frozen=True)
class Mismatch:
    """The first wrong element of an output, in the words a kernel author can act on."""

    output: str
    index: Dimensions
    got: str
    wanted: str
    limit: str
    """Largest error that would have been accepted at this element, or EXACT."""
    wrong_share: float
    """Share of wrong elements in this output, 0 to 1."""
    shape: Dimensions
    dtype: str


@dataclass(frozen=True)
class RootMeanSquare:
    """Every element is within its limit, and all together are further off than by rounding."""

    output: str
    error: float
    limit: float
    shape: Dimensions
    dtype: str


@dataclass(frozen=True)
class Scalar:
    """A Python value that was returned, and the correct one, both as Python writes them."""

    got: str
    expected: str


@dataclass(frozen=True)
class NoCanonicalForm:
    """An output that the problem's canonical form shows to be no correct answer."""

    output: str


@dataclass(frozen=True)
class Impossible:
    """A value of a random operator that chance cannot give there."""

    output: str
    index: Dimensions
    got: str
    wrong_share: float
    shape: Dimensions


class SeedFault(StrEnum):
    """How outputs of a random operator do not follow the seed."""

    OTHER_NUMBERS = "other numbers after the same seed"
    NOT_ADVANCED = "the same numbers in the next call"
    SAME_NUMBERS = "the same numbers after another seed"
    SEEN_BEFORE = "the numbers of an earlier call"
    OVERLAP = "stretches of an earlier call"
    REORDERED = "numbers of an earlier call in another order"


@dataclass(frozen=True)
class Seed:
    output: str
    fault: SeedFault
    own_generator: bool = False
    """The call was given a generator; else torch's default one counts."""


class StatisticalTest(StrEnum):
    """Statistical tests of a random operator's numbers (``harness/verdict/random/battery.py``)."""

    REPEATS = "repeated values"
    MEAN = "mean"
    VARIANCE = "variance"
    DISTRIBUTION = "Kolmogorov-Smirnov"
    BINS = "chi-square"
    RESOLUTION = "resolution"
    BY_ARGUMENT = "by argument"
    BLOCKS = "block means"
    PAIRS = "neighbours"
    LAGS = "correlation"
    SPREADS = "correlated spread"


@dataclass(frozen=True)
class Statistic:
    """The first statistical test that numbers fail."""

    output: str
    test: StatisticalTest
    value: float
    limit: float
    samples: int
    high: bool | None = None
    """Whether mean or variance are too large; None for other tests."""
    places: Dimensions = ()
    """What the test found: elements and a length, a lag, a block's length, or how many values are different."""
