"""Wrong outputs and forbidden writes, apart from wrong values.

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
    """None where the worker named no shape."""
    expected: Dimensions


@dataclass(frozen=True)
class Strides:
    """Wrong strides, in elements, where a view or the problem file specifies them."""

    output: str
    got: Dimensions | None
    expected: Dimensions


@dataclass(frozen=True)
class StorageOffset:
    """Wrong storage offset of a view, in elements."""

    output: str
    got: float | None
    """None where the worker named none; no whole number where it lies between two elements."""
    expected: int | None
    """None where any offset within its base is correct."""


@dataclass(frozen=True)
class Dtype:
    """An output's dtype, by its name in torch."""

    output: str
    got: str
    expected: str


class Attribute(StrEnum):
    """Further attributes that an output must have."""

    TYPE = "type"
    DEVICE = "device"
    REQUIRES_GRAD = "requires_grad"
    LAZY_BITS = "lazy conjugate and negative bits"
    COUNT = "number of returned values"


@dataclass(frozen=True)
class WrongAttribute:
    """An output with a wrong attribute."""

    output: str
    attribute: Attribute
    got: str
    expected: str


class Aliasing(StrEnum):
    """Wrong sharing of memory between an output and another tensor."""

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
    """Index of the first changed element in the storage."""
    changed: int
    elements: int
    """Number of elements of the storage."""
    writes_part: bool = False
    """The call may write another part of the argument."""


@dataclass(frozen=True)
class PointersChanged:
    """An array of pointers, or the memory around it, was written."""

    argument: str
