"""Sums, extremes and scans of Triton's interpreter for formats that numpy lacks; sums of 16 bits round at each step."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kgbench.harness.candidate.interpreter.arithmetic import format_of, numbers_of
from kgbench.harness.candidate.interpreter.formats import Array, decode, encode

LEFTMOST: Final = {"nanargmin": (np.argmin, np.inf), "nanargmax": (np.argmax, -np.inf)}
"""What finds an index where numpy's function of this name refuses, for all of a row is NaN, and what stands for NaN."""


class Reductions:
    """Replacements for methods of ``ReduceOps`` and ``ScanOps``; ``module`` is ``triton.runtime.interpreter``."""

    def __init__(self, module: Any) -> None:
        self.handle = module.TensorHandle
        self.reduce = module.ReduceOps
        self.scan = module.ScanOps
        self.tensor = module.tl.core.tensor
        names = ("sum", "min_max", "generic_reduce")
        self.original = {name: getattr(module.ReduceOps, name) for name in names}
        names = ("cumsum", "cumprod", "generic_scan")
        self.scans = {name: getattr(module.ScanOps, name) for name in names}

    def install(self) -> None:
        """Put the replacements into the classes."""
        self.reduce.sum = lambda each, tensor: self._sum(each, tensor)
        self.reduce.min_max = lambda each, *args, **kwargs: self._min_max(each, *args, **kwargs)
        self.scan.cumsum = lambda each, tensor: self._scanned(each, tensor, "cumsum", np.add)
        self.scan.cumprod = lambda each, tensor: self._scanned(each, tensor, "cumprod", np.multiply)
        self.reduce.generic_reduce = lambda each, tensors: self._reduced(each, tensors)
        self.scan.generic_scan = lambda each, tensors: self._combined(each, tensors)

    def _sum(self, reduce: Any, tensor: Any) -> Any:
        """In pairs, each sum rounded: numpy sums float16 in float32, the compiler's code does not."""
        form = format_of(tensor.dtype)
        if form is None and tensor.handle.data.dtype != np.float16:
            return self.original["sum"](reduce, tensor)
        data, axis = tensor.handle.data, reduce.axis
        if axis is None:
            data, axis = data.reshape(-1), 0
        if form is None:
            total = _in_pairs(data, axis, np.add)
        else:
            total = _in_pairs(data, axis, lambda a, b: encode(decode(a, form) + decode(b, form), form))
        if reduce.keep_dims:
            rank = tensor.handle.data.ndim
            total = total.reshape((1,) * rank) if reduce.axis is None else np.expand_dims(total, axis)
        return reduce.to_tensor(total, tensor.dtype)

    def _min_max(self, reduce: Any, tensor: Any, val_reduce_op: Any, idx_reduce_op: Any = None) -> Any:
        tensor = tensor[0] if isinstance(tensor, tuple) else tensor
        form = format_of(tensor.dtype)
        index = _without_refusal(idx_reduce_op)
        if form is None:
            return self.original["min_max"](reduce, tensor, val_reduce_op, index)

        def best(bits: Array, **kwargs: Any) -> Array:
            return encode(np.asarray(val_reduce_op(decode(bits, form), **kwargs)), form)

        def place(bits: Array, **kwargs: Any) -> Any:
            return index(decode(bits, form), **kwargs)

        return self.original["min_max"](reduce, tensor, best if val_reduce_op else None, place if index else None)

    def _reduced(self, reduce: Any, tensors: Any) -> Any:
        """A combine function of the kernel's own, of whole halves at once: the original calls it for each element."""
        if not _is_elementwise(reduce.combine_fn.fn):
            return self.original["generic_reduce"](reduce, tensors)
        rank, axis = tensors[0].handle.data.ndim, reduce.axis
        rows = [each.handle.data.reshape(-1) if axis is None else each.handle.data for each in tensors]
        rows = [np.moveaxis(each, axis or 0, 0) for each in rows]
        while len(rows[0]) > 1:
            # Neighbours, so that the order stays.
            rows = self._pairwise(reduce, tensors, [each[0::2] for each in rows], [each[1::2] for each in rows])
        found = [each[0] for each in rows]
        if reduce.keep_dims:
            found = [each.reshape((1,) * rank) if axis is None else np.expand_dims(each, axis) for each in found]
        return [reduce.to_tensor(each, tensor.dtype) for each, tensor in zip(found, tensors, strict=True)]

    def _combined(self, scan: Any, tensors: Any) -> list[Any]:
        """The same, of what is 1, 2, 4, … apart."""
        if not _is_elementwise(scan.combine_fn.fn):
            found: list[Any] = self.scans["generic_scan"](scan, tensors)
            return found
        rows = [np.moveaxis(each.handle.data, scan.axis, 0).copy() for each in tensors]
        apart = 1
        while apart < len(rows[0]):
            # Of the whole length, which has to be a power of two; the first results are not taken.
            later = self._pairwise(scan, tensors, [np.roll(each, apart, 0) for each in rows], rows)
            for each, new in zip(rows, later, strict=True):
                each[apart:] = new[apart:]
            apart *= 2
        moved = [np.ascontiguousarray(np.moveaxis(each, 0, scan.axis)) for each in rows]
        return [scan.to_tensor(each, tensor.dtype) for each, tensor in zip(moved, tensors, strict=True)]

    def _pairwise(self, op: Any, tensors: Any, left: list[Array], right: list[Array]) -> list[Array]:
        """What the combine function makes of two times as many arrays as there are tensors."""
        types = [tensor.dtype for tensor in tensors]
        given = [op.to_tensor(each, dtype) for each, dtype in zip((*left, *right), (*types, *types), strict=True)]
        found = op.combine_fn.fn(*given)
        found = found if isinstance(found, tuple) else (found,)
        return [
            np.broadcast_to(each.handle.data if isinstance(each, self.tensor) else np.asarray(each), like.shape).astype(
                like.dtype
            )
            for each, like in zip(found, left, strict=True)
        ]

    def _scanned(self, scan: Any, tensor: Any, name: str, op: Callable[[Array, Array], Array]) -> list[Any]:
        form = format_of(tensor.dtype)
        if form is None:
            found: list[Any] = self.scans[name](scan, tensor)
            return found
        rows = np.moveaxis(numbers_of(tensor.handle), scan.axis, 0)
        bits = np.moveaxis(tensor.handle.data, scan.axis, 0).copy()
        for i in range(1, len(rows)):
            bits[i] = encode(op(decode(bits[i - 1], form), rows[i]), form)
        return [scan.to_tensor(np.ascontiguousarray(np.moveaxis(bits, 0, scan.axis)), tensor.dtype)]


@functools.cache
def _is_elementwise(combine: Any) -> bool:
    """Whether a function may be called of whole arrays: nothing in it asks for one truth value."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(combine)))
    except (OSError, TypeError, SyntaxError):
        return False
    return not any(isinstance(node, (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.Assert)) for node in ast.walk(tree))


def _in_pairs(data: Array, axis: int, add: Callable[[Array, Array], Array]) -> Array:
    rows: Array = np.moveaxis(data, axis, 0)
    while len(rows) > 1:
        half = len(rows) // 2
        rows = np.concatenate([add(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
    total: Array = rows[0]
    return total


def _without_refusal(find: Any) -> Any:
    # By its name: the observer may stand around the function.
    name = getattr(find, "__name__", "")
    if name not in LEFTMOST:
        return find
    plain, instead = LEFTMOST[name]

    def found(data: Array, **kwargs: Any) -> Any:
        if data.dtype.kind == "f":
            data = np.where(np.isnan(data), data.dtype.type(instead), data)
        return plain(data, **kwargs)

    return found
