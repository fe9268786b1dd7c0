"""What an entry returned or wrote and should not have, apart from values.

``output`` is the name of the written argument, or ``return``, ``return[i]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kgbench.core.details.values import Dimensions, Mismatch


@dataclass(frozen=True)
class Shape:
    """An output's shape."""

    output: str
    got: Dimensions | None
    """None where the worker named none."""
    expected: Dimensions


@dataclass(frozen=True)
class Strides:
    """An output's strides, in elements, where a view or the problem's file promises them."""

    output: str
    got: Dimensions | None
    expected: Dimensions


@dataclass(frozen=True)
class StorageOffset:
    """A view's storage offset, in elements."""

    output: str
    got: float | None
    """None where the worker named none; no whole number where it lies between two elements."""
    expected: int | None
    """None where any in its base is correct."""


@dataclass(frozen=True)
class Dtype:
    """An output's dtype, by its name in torch."""

    output: str
    got: str
    expected: str


class Attribute(StrEnum):
    """What else an output has to be."""

    TYPE = "type"
    DEVICE = "device"
    REQUIRES_GRAD = "requires_grad"
    LAZY_BITS = "lazy conjugate and negative bits"
    COUNT = "number of returned values"


@dataclass(frozen=True)
class WrongAttribute:
    """An output with an attribute that is not what was promised."""

    output: str
    attribute: Attribute
    got: str
    expected: str


class Aliasing(StrEnum):
    """How an output lies in another's memory and should not, or does not and should."""

    SHARES_STORAGE = "shares storage with an input"
    NOT_ITSELF = "not the argument itself"
    LIES_IN_INPUT = "lies in the memory of an input"
    LIES_ELSEWHERE = "lies in other memory than its base"
    CHANGES_WITH_INPUTS = "changes with the inputs after the call has returned"
    SHOWS_OTHER_VALUES = "does not show what is written to its base"


@dataclass(frozen=True)
class Alias:
    """``name``: the output, or the argument that it should be or lie in."""

    name: str
    aliasing: Aliasing
    value: Mismatch | None = None
    """The first element that shows another value than its base has."""


@dataclass(frozen=True)
class Guard:
    """Bytes before or after an argument's tensor were written."""

    argument: str
    behind: bool
    distance: int
    """Bytes between the tensor's end and the first byte that was written; 0 where ``behind`` is False."""


@dataclass(frozen=True)
class InputChanged:
    """Elements of an argument that a call may not write were written."""

    argument: str
    element: int
    """The first, counted in the storage."""
    changed: int
    elements: int
    """How many the storage has."""
    writes_part: bool = False
    """The call may write another part of the argument."""


@dataclass(frozen=True)
class PointersChanged:
    """An array of pointers was written, or what lies beside it."""

    argument: str
