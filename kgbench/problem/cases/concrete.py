"""A concrete case: the exact tensors and scalars of one call. Sizes, strides and Python values, no tensor."""

from __future__ import annotations

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
    """Values must be equal bit for bit."""
    unjudged: bool = False
    """No value is judged."""
    call: Call | None = None
    """The call in the trace format; None where expressions make the arguments."""
    offset: int = 0
    """Elements of storage before each tensor's first, of a call."""
    lazy: str = ""
    """``conj`` or ``neg``, of a call: tensors are handed over with that bit set."""
    late: bool = False
    """Values are still being written on the current stream when the call is made."""
    samples: int | None = None
    """Of phase large: the dimension of which some rows alone are judged; None where all are."""

    @cached_property
    def variables(self) -> dict[str, Any]:
        """What expressions see, by name: the options above, ``dtype`` and ``itemsize``, and the sizes."""
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
    """Elements of storage from its begin to the view's last element."""
    dtype: str
    passed: PassedAs
    live: Expr | None
    draw: BoundDraw
    """Its content before the call; ``zeros`` for access ``write``, where the harness chooses it."""
    contiguous: bool
    """The view is row-major without gaps."""
    slots: tuple[int, ...] = ()
    """Positions of ``view[b]`` in memory, in multiples of the first stride; empty where they are in order."""
    lazy: str = ""
    """``conj`` or ``neg``: handed over with that bit set, so that its values are those of storage, changed so."""
    host: bool = False
    """The candidate gets it in the memory of the host."""

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
    """A TensorSpec, a tuple of them and of None, or what is passed: number, text, truth value, None, the name of a
    dtype, layout or memory format, or a tuple of numbers."""

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


def case_bytes(bound: BoundCase) -> int:
    """Bytes of all argument tensors' storages."""
    return sum(spec.extent * ITEMSIZE[spec.dtype] for spec in bound.specs)


def sampled_rows(bound: BoundCase) -> int:
    """How many rows the sampled dimension of a call has, in the tensor that has the most there; 0 where none has it."""
    at = bound.case.samples
    return 0 if at is None else max((spec.shape[at] for spec in bound.specs if len(spec.shape) > at), default=0)
