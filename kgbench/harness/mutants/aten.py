"""What the ATen mutants change: arguments as a careless kernel reads them, sums in 16 bits, and random numbers.

Changes of arguments are functions of the reference's arguments by name and the call's context that change the arguments
in place; the reference then answers as a kernel with that mistake would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kgbench.baselines.expected import Sampled
from kgbench.harness.verdict.reference import Draw, ReferenceContext, ReferenceFunction, typed_outputs

SIXTEEN_BIT: Final = (torch.float16, torch.bfloat16)
DIMENSIONS: Final = ("dim", "dims", "dim0", "dim1")
"""Names of parameters that number dimensions; negative numbers count from the end."""
FEWEST_TERMS: Final = 64
"""Fewest terms of a sum that is rounded to 16 bits: with fewer it is hardly worse."""
MOST_PARTS: Final = 2048
"""Most roundings of one sum; of more terms, several are added before each."""
BLOCK: Final = 1024
"""Elements per block of the mutant that draws the same numbers in every block."""

Outputs = dict[str, torch.Tensor]


# --- arguments ---


def ignores_keepdim(given: dict[str, Any], context: ReferenceContext) -> None:
    if "keepdim" in given:
        given["keepdim"] = False


def counts_from_the_front(given: dict[str, Any], context: ReferenceContext) -> None:
    """-1 as 0, -2 as 1 …"""
    for name in DIMENSIONS:
        value = given.get(name)
        if isinstance(value, int):
            given[name] = value if value >= 0 else -value - 1
        elif isinstance(value, (list, tuple)):
            given[name] = type(value)(each if each >= 0 else -each - 1 for each in value)


def forgets_the_last_tensor(given: dict[str, Any], context: ReferenceContext) -> None:
    """Replaces the last tensor of a list by zeros."""
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and any(isinstance(each, torch.Tensor) for each in value):
            last = max(index for index, each in enumerate(value) if isinstance(each, torch.Tensor))
            given[name] = [torch.zeros_like(each) if index == last else each for index, each in enumerate(value)]


def one_early(value: torch.Tensor) -> torch.Tensor:
    """Reads a tensor one element before its start, where its storage has one."""
    if not value.storage_offset() or not value.numel():
        return value
    return value.as_strided(value.shape, value.stride(), value.storage_offset() - 1)


def reads_flat(given: dict[str, Any], context: ReferenceContext) -> None:
    """Reads broadcast operands in the output's layout, from the start again at their end."""
    tensors = [each for each in given.values() if isinstance(each, torch.Tensor)]
    shape = broadcast([tuple(each.shape) for each in tensors])
    if shape is None:
        return
    for name, value in given.items():
        if isinstance(value, torch.Tensor) and value.numel() and misread(tuple(value.shape), shape):
            count = torch.Size(shape).numel()
            places = torch.arange(count, device=value.device) % value.numel()
            given[name] = value.reshape(-1)[places].reshape(shape)


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The common shape, or None where there is none."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def misread(shape: tuple[int, ...], common: tuple[int, ...]) -> bool:
    """Whether reading a tensor of this shape repeatedly differs from broadcasting it."""
    inner = common[len(common) - len(shape) :]
    while shape and shape[0] == 1:
        shape, inner = shape[1:], inner[1:]
    return shape != inner


def rounds_to_zero(
    function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
) -> Outputs:
    """Quotients truncated instead of rounded down: one more where they are negative and not whole."""
    right = typed_outputs(function, given, arguments, context)
    if not {"self", "other"} <= set(given):
        return right
    quotient = torch.div(given["self"], given["other"])
    cut = (quotient < 0) & (quotient != quotient.floor()) & torch.isfinite(quotient)
    return {
        name: torch.where(cut.expand(value.shape), value + torch.ones_like(value), value)
        for name, value in right.items()
    }


# --- sums ---


def narrow_sums(
    function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
) -> Outputs:
    """Sums of numbers that came in 16 bits are rounded to 16 bits after every term."""
    with NarrowSums(narrowest(given.values())):
        return typed_outputs(function, given, arguments, context)


def narrowest(values: Iterable[Any]) -> torch.dtype | None:
    """The first 16-bit floating dtype among tensors and lists of them."""
    flat = [each for value in values for each in (value if isinstance(value, (list, tuple)) else [value])]
    return next((each.dtype for each in flat if isinstance(each, torch.Tensor) and each.dtype in SIXTEEN_BIT), None)


class NarrowSums(TorchDispatchMode):
    """Rounds the sums of whatever runs in it after every term, and says how many terms the longest had."""

    def __init__(self, narrow: torch.dtype | None, rounds: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.narrow = narrow
        """dtype to which sums are rounded; None rounds nothing."""
        self.rounds = rounds
        """Whether sums are rounded; else their terms are only counted."""
        self.terms = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        sums = str(func) in _SUMS and args[0].is_floating_point() and args[0].numel()
        summed = _SUMS[str(func)](*args) if sums else None
        if summed is None or self.narrow is None:
            return func(*args, **(kwargs or {}))
        self.terms = max(self.terms, summed.terms)
        if summed.terms < FEWEST_TERMS or not self.rounds:
            return func(*args, **(kwargs or {}))
        total, totals = torch.zeros((), dtype=torch.float64), []
        for part in summed.parts():
            total = (total + part).to(self.narrow).to(torch.float64)
            totals.append(total)
        return summed.result(totals)


@dataclass(frozen=True)
class _Sum:
    terms: int
    parts: Callable[[], Iterator[torch.Tensor]]
    """Yields one term after the other; of very many, several added up."""
    result: Callable[[list[torch.Tensor]], torch.Tensor]
    """Makes the operator's answer from the running totals."""


def _reduction(x: torch.Tensor, dims: Any = None, keepdim: bool = False, mean: bool = False) -> _Sum:
    if not x.dim():
        return _Sum(1, lambda: iter([x]), lambda totals: totals[-1])
    dims = list(range(x.dim())) if dims is None or dims == [] else [dim % x.dim() for dim in dims]
    kept = [size for dim, size in enumerate(x.shape) if dim not in dims]
    rows = x.permute(*dims, *(dim for dim in range(x.dim()) if dim not in dims)).reshape(-1, *kept)
    shape = [1 if dim in dims else size for dim, size in enumerate(x.shape)] if keepdim else kept
    divisor = len(rows) if mean else 1
    return _Sum(len(rows), lambda: _parts(rows), lambda totals: (totals[-1] / divisor).reshape(shape))


def _parts(rows: torch.Tensor) -> Iterator[torch.Tensor]:
    step = -(-len(rows) // MOST_PARTS)
    for begin in range(0, len(rows), step):
        yield rows[begin : begin + step].sum(dim=0)


def _product(a: torch.Tensor, b: torch.Tensor) -> _Sum:
    def parts() -> Iterator[torch.Tensor]:
        step = -(-a.shape[-1] // MOST_PARTS)
        for begin in range(0, a.shape[-1], step):
            yield a[..., begin : begin + step] @ b[..., begin : begin + step, :]

    return _Sum(a.shape[-1], parts, lambda totals: totals[-1])


def _product_added(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> _Sum:
    product = _product(a, b)
    return _Sum(product.terms, product.parts, lambda totals: c + totals[-1])


def _scan(x: torch.Tensor, dim: int) -> _Sum:
    moved = x.movedim(dim, 0) if x.dim() else x.reshape(1)
    terms = len(moved) if len(moved) <= MOST_PARTS else 0
    return _Sum(terms, lambda: iter(moved), lambda totals: torch.stack(totals).movedim(0, dim))


_SUMS: Final[dict[str, Callable[..., _Sum]]] = {
    "aten.sum.default": _reduction,
    "aten.sum.dim_IntList": _reduction,
    "aten.mean.default": partial(_reduction, mean=True),
    "aten.mean.dim": partial(_reduction, mean=True),
    "aten.mm.default": _product,
    "aten.bmm.default": _product,
    "aten.addmm.default": _product_added,
    "aten.baddbmm.default": _product_added,
    "aten.cumsum.default": _scan,
}
"""The sum that each of ATen's overloads computes, by the overload's name."""


# --- chance ---


def _seeded_like(arguments: Mapping[str, Any], device: torch.device, seed: int | None) -> dict[str, Any]:
    """The arguments with a generator that is at its beginning; without a seed that of the one passed, or torch's."""
    passed = arguments.get("generator")
    if seed is None:
        seed = torch.initial_seed() if passed is None else passed.initial_seed()
    return {**arguments, "generator": torch.Generator(device).manual_seed(seed)}


def begins_anew(
    function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
) -> Outputs:
    """The numbers that follow a seed, in every call."""
    return typed_outputs(function, given, _seeded_like(arguments, _device(context), None), context)


class IgnoresSeed:
    """Draws from a generator of its own, which continues from call to call."""

    def __init__(self) -> None:
        self.generators: dict[torch.device, torch.Generator] = {}

    def __call__(
        self,
        function: ReferenceFunction,
        given: dict[str, Any],
        arguments: Mapping[str, Any],
        context: ReferenceContext,
    ) -> Outputs:
        device = _device(context)
        own = self.generators.setdefault(device, torch.Generator(device))
        return typed_outputs(function, given, {**arguments, "generator": own}, context)


def ignores_generator(
    function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
) -> Outputs:
    return typed_outputs(function, given, {**arguments, "generator": None}, context)


def drawn_by(draw: Draw) -> Callable[..., Outputs]:
    """The outputs with random ones drawn in a wrong way."""

    def outputs(
        function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
    ) -> Outputs:
        return typed_outputs(function, given, arguments, context, draw)

    return outputs


def biased(sampled: Sampled, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
    """In every tenth place the smaller of two numbers."""
    first, second = (sampled.draw(dtype, generator) for _ in range(2))
    tenth = torch.arange(first.numel(), device=first.device).reshape(first.shape) % 10 == 0
    return torch.where(tenth, torch.minimum(first, second), first)


def same_blocks(sampled: Sampled, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
    """In every block of 1024 elements the numbers of the first."""
    right = sampled.draw(dtype, generator)
    places = torch.arange(right.numel(), device=right.device) % BLOCK
    return right.reshape(-1)[places].reshape(right.shape)


def like_neighbours(sampled: Sampled, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
    """In every tenth place the number of the one before."""
    right = sampled.draw(dtype, generator)
    tenth = torch.arange(right.numel(), device=right.device).reshape(right.shape) % 10 == 9
    return torch.where(tenth, right.reshape(-1).roll(1).reshape(right.shape), right)


def _device(context: ReferenceContext) -> torch.device:
    return next(iter(context.stored.values())).device


# --- Python values ---


def another_type(value: Any) -> Any:
    """A whole number as float, a float as complex, a complex number as text, a truth value as whole number."""
    return {bool: int, int: float, float: complex}.get(type(value), str)(value)


def in_single_precision(value: Any) -> Any:
    """Passed through float32, which holds whole numbers up to 2**24."""
    if type(value) is complex:
        return complex(torch.tensor(value, dtype=torch.complex64).item())
    return type(value)(torch.tensor(float(value), dtype=torch.float32).item()) if _is_finite(value) else value


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and abs(value) < 1e38
