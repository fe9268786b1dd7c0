"""What the BLAS mutants change about a call: flags, factors, and which memory the operands are read from.

Each is a function of the reference's arguments by name and the call's context that changes the arguments in place; the
reference then answers as a kernel with that mistake would. Names are those of the cuBLAS documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import torch

from kgbench.harness.verdict.reference import ReferenceContext, ReferenceFunction, typed_outputs

Change = Callable[[dict[str, Any], ReferenceContext], None]
SIXTEEN_BIT: Final = (torch.float16, torch.bfloat16)


class RealZero(float):
    """A zero that compares unequal to 0, so that the reference multiplies by it."""

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    __hash__ = float.__hash__


class ComplexZero(complex):
    """As ``RealZero``, complex."""

    __eq__ = RealZero.__eq__
    __ne__ = RealZero.__ne__
    __bool__ = RealZero.__bool__
    __hash__ = complex.__hash__


# --- factors ---


def takes(parameter: str, value: float) -> Change:
    """Computes with another factor than the given one."""

    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        if parameter in given:
            # Of its type: a whole alpha keeps sums of whole numbers whole.
            given[parameter] = type(given[parameter])(value)

    return change


def multiplies_by_zero(parameter: str) -> Change:
    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        if given.get(parameter) == 0:
            given[parameter] = (ComplexZero if isinstance(given[parameter], complex) else RealZero)()

    return change


# --- flags ---


def transposes(taken: Mapping[str, str]) -> Change:
    """Replaces one transpose flag by another. Where that turns a matrix, it is read with the other flag's number of
    rows.
    """

    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        for flag, matrix in _transpose_flags(given):
            asked = given[flag]
            given[flag] = taken.get(asked, asked)
            # Triangles are square, and a band's memory does not turn with its matrix.
            if (given[flag] == "N") != (asked == "N") and "diag" not in given:
                *batch, rows, columns = context.stored[matrix].shape
                _read(given, context, matrix, (*batch, columns, rows), context.stored[matrix].stride())

    return change


def conjugates(taken: Mapping[str, str]) -> Change:
    """Replaces one transpose flag by another; a routine whose flag has no 'C' conjugates one more operand."""

    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        flags = [flag for flag, _ in _transpose_flags(given)]
        if flags and not is_symmetric(given):
            given.update({flag: taken.get(given[flag], given[flag]) for flag in flags})
            return
        name = "y" if "A" in context.written else "A" if "A" in given else "x"
        given[name] = given[name].conj().resolve_conj()

    return change


def triangles(taken: Mapping[str, str]) -> Change:
    """Replaces one triangle by the other, for written matrices too."""

    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        if "uplo" not in given:
            return
        given["uplo"] = taken.get(given["uplo"], given["uplo"])
        for name in context.written:
            variables = context.views[name][4]
            if "uplo" in variables:
                variables["uplo"] = given["uplo"]

    return change


def diagonals(taken: Mapping[str, str]) -> Change:
    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        if "diag" in given:
            given["diag"] = taken.get(given["diag"], given["diag"])

    return change


def sides(taken: Mapping[str, str]) -> Change:
    """Replaces one side by the other; the matrix on that side is read with that side's size."""

    def change(given: dict[str, Any], context: ReferenceContext) -> None:
        flag = next((name for name in ("side", "mode") if name in given), None)
        if flag is None or given[flag] not in taken:
            return
        given[flag] = taken[given[flag]]
        order = given["m"] if given[flag] == "L" else given["n"]
        name = "x" if flag == "mode" else "Aarray" if "Aarray" in given else "A"
        view = context.stored[name]
        size = (order,) if flag == "mode" else (*view.shape[:-2], order, order)
        _read(given, context, name, size, view.stride())

    return change


# --- memory ---


def packed_columns(given: dict[str, Any], context: ReferenceContext) -> None:
    """Reads every matrix as if its leading dimension were its rows."""
    for name, view in context.stored.items():
        if f"ld{_plain(name).lower()}" in given and view.dim() >= 2:
            _read(given, context, name, view.shape, (*view.stride()[:-1], view.shape[-2]))


def packed_batch(given: dict[str, Any], context: ReferenceContext) -> None:
    """Reads every matrix of a batch right after the one before; of pointers it follows the first alone."""
    for name, view in context.stored.items():
        if "batchCount" not in given or not view.numel():
            continue
        strides, slots = view.stride(), context.views[name][5]
        start = slots[0] * strides[0] if slots else 0
        given[name] = reread(view, view.shape, (strides[-1] * view.shape[-1], *strides[1:]), start)


def packed_vectors(given: dict[str, Any], context: ReferenceContext) -> None:
    """Reads every vector as if its increment were 1, or -1 where it is negative."""
    for name, view in context.stored.items():
        if f"inc{_plain(name)}" in given:
            _read(given, context, name, view.shape, (*view.stride()[:-1], 1))


def walks_forward(given: dict[str, Any], context: ReferenceContext) -> None:
    """Treats negative increments as positive."""
    given.update({name: abs(given[name]) for name in ("incx", "incy") if name in given})


def reread(view: torch.Tensor, shape: Sequence[int], strides: Sequence[int], start: int = 0) -> torch.Tensor:
    """Elements at other strides in the memory that a view spans, from ``start`` on; NaN past its end."""
    if not math.prod(shape) or not view.numel():
        return torch.full(tuple(shape), math.nan, dtype=view.dtype, device=view.device)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(view.shape, view.stride(), strict=True))
    flat = view.as_strided((extent,), (1,), view.storage_offset())
    places = torch.full((), start, device=view.device)
    for size, stride in zip(shape, strides, strict=True):
        places = places[..., None] + stride * torch.arange(size, device=view.device)
    values = flat[places.clamp(max=extent - 1)]
    return torch.where(places < extent, values, torch.full_like(values, math.nan))


# --- sums ---


def half_sums(
    function: ReferenceFunction, given: dict[str, Any], arguments: Mapping[str, Any], context: ReferenceContext
) -> dict[str, torch.Tensor]:
    """The outputs of a matrix product of 16-bit numbers whose sums are rounded to these after every term."""
    (out,) = context.written
    suffix = "array" if "Aarray" in given else ""
    a, b = f"A{suffix}", f"B{suffix}"
    narrow = given[a].dtype
    if narrow not in SIXTEEN_BIT:
        return typed_outputs(function, given, arguments, context)
    inner = (-1 if given["transa"] == "N" else -2, -2 if given["transb"] == "N" else -1)
    total = torch.zeros_like(given[out], dtype=narrow)
    for term in range(given["k"]):
        pair = {name: given[name].narrow(dim, term, 1) for name, dim in zip((a, b), inner, strict=True)}
        product = function.expected({**given, **pair, "k": 1, "beta": 0.0}, context.written)[out].value
        total = (total + product).to(narrow)
    rest = function.expected({**given, "alpha": 0.0}, context.written)[out].value
    return {out: (total + rest).to(arguments[out].dtype)}


# --- shared ---


def is_symmetric(given: Mapping[str, Any]) -> bool:
    """A routine for symmetric matrices, which conjugates nothing."""
    return "uplo" in given and "diag" not in given


def _transpose_flags(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each transpose flag and the matrix that it is about."""
    for flag, matrix in (("trans", "A"), ("transa", "A"), ("transb", "B")):
        if flag in given:
            yield flag, matrix if matrix in given else f"{matrix}array"


def _plain(name: str) -> str:
    return name.removesuffix("array")


def _read(
    given: dict[str, Any], context: ReferenceContext, name: str, shape: Sequence[int], strides: Sequence[int]
) -> None:
    """Have an operand read at other strides; behind pointers each matrix from where its own pointer says."""
    values, slots = reread(context.stored[name], shape, strides), context.views[name][5]
    given[name] = values[slots] if slots else values
