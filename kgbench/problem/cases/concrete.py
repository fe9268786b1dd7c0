"""A concrete case: the exact tensors and scalars of one call. Sizes, strides and Python values, no tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kgbench.core.kinds import Phase
from kgbench.problem.calls import Call, format_call
from kgbench.problem.expressions import ITEMSIZE, Expr
from kgbench.problem.model import Access, PassedAs


@dataclass(frozen=True)
class Case:
    """One call's sizes and options."""

    id: str
    """``check-3-float16``: unique within the overload."""
    overload: str
    phase: Phase
    dtype: str
    sizes: dict[str, Any]
    """The case's variables: its own values and defaults, those that its call gives, and derived ones."""
    values: str = "default"
    """Name of the value set from which tensors are drawn."""
    exact: bool = False
    """Whether values must be equal bit for bit."""
    unjudged: bool = False
    """Whether no value is judged."""
    call: Call | None = None
    """The call in the trace format; None when expressions give the arguments."""
    offset: int = 0
    """Storage offset of each tensor, in elements. Only for a call."""
    lazy: str = ""
    """``conj`` or ``neg``: tensors are passed with that bit set. Only for a call."""
    late: bool = False
    """Whether values are still being written on the current stream when the call is made."""
    samples: int | None = None
    """Dimension of which only some rows are judged; None when all are. Only in phase large."""

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Variables of expressions: the options above, ``dtype``, ``itemsize`` and the sizes."""
        options: dict[str, Any] = {"values": self.values, "exact": self.exact, "unjudged": self.unjudged}
        if self.call is not None:
            options |= {"offset": self.offset, "lazy": self.lazy, "late": self.late, "call": format_call(self.call)}
        return {**options, "dtype": self.dtype, "itemsize": ITEMSIZE[self.dtype], **self.sizes}


@dataclass(frozen=True)
class BoundDraw:
    """How values are drawn, with the arguments evaluated."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to be made: a view of ``extent`` elements of storage. Sizes are in elements."""

    name: str
    access: Access
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    extent: int
    """Elements of storage from its start up to and including the view's last element."""
    dtype: str
    passed: PassedAs
    live: Expr | None
    draw: BoundDraw
    """How its values before the call are drawn; ``zeros`` for access ``write``, whose values the harness chooses."""
    contiguous: bool
    """Whether the view is row-major without gaps."""
    slots: tuple[int, ...] = ()
    """Position of each ``view[b]`` in memory, in multiples of the first stride; empty when they are in order."""
    lazy: str = ""
    """``conj`` or ``neg``: passed with that bit set, so that its values are those in storage, conjugated or negated."""
    host: bool = False
    """Whether the candidate gets it in host memory."""

    @property
    def elements(self) -> int:
        """Elements of the view."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class BoundArgument:
    name: str
    type: str
    keyword_only: bool
    value: Any
    """A TensorSpec, a tuple of TensorSpec and None, or the value that is passed: number, text, bool, None, tuple of
    numbers, or the name of a dtype, layout or memory format."""

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Its tensors, each by its own name: the argument's, or ``NAME[i]`` in a list."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(value for value in values if isinstance(value, TensorSpec))


@dataclass(frozen=True)
class BoundCase:
    case: Case
    arguments: tuple[BoundArgument, ...]
    """Arguments in the signature's order."""

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Every tensor, in the signature's order."""
        return tuple(spec for argument in self.arguments for spec in argument.specs)

    def passed(self, value: Callable[[BoundArgument], Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of a call, with what ``value`` makes of each."""
        positional = [value(each) for each in self.arguments if not each.keyword_only]
        return positional, {each.name: value(each) for each in self.arguments if each.keyword_only}


def case_bytes(bound: BoundCase) -> int:
    """Total bytes of the storages of all argument tensors."""
    return sum(spec.extent * ITEMSIZE[spec.dtype] for spec in bound.specs)


def sampled_rows(bound: BoundCase) -> int:
    """Largest size of the sampled dimension over a call's tensors; 0 when no dimension is sampled."""
    at = bound.case.samples
    if at is None:
        return 0
    return max((spec.shape[at] for spec in bound.specs if -len(spec.shape) <= at < len(spec.shape)), default=0)
