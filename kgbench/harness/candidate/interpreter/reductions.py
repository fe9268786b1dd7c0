"""Sums, extremes and scans of Triton's interpreter for formats that numpy lacks; sums of 16 bits round at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kgbench.harness.candidate.interpreter.arithmetic import format_of, numbers_of
from kgbench.harness.candidate.interpreter.formats import Array, decode, encode

LEFTMOST: Final = {np.nanargmin: (np.argmin, np.inf), np.nanargmax: (np.argmax, -np.inf)}
"""What finds an index where numpy refuses, for all of a row is NaN, and what then stands for NaN."""


class Reductions:
    """Replacements for methods of ``ReduceOps`` and ``ScanOps``; ``module`` is ``triton.runtime.interpreter``."""

    def __init__(self, module: Any) -> None:
        self.handle = module.TensorHandle
        self.reduce = module.ReduceOps
        self.scan = module.ScanOps
        self.original = {"sum": module.ReduceOps.sum, "min_max": module.ReduceOps.min_max}
        self.scans = {"cumsum": module.ScanOps.cumsum, "cumprod": module.ScanOps.cumprod}

    def install(self) -> None:
        """Put the replacements into the classes."""
        self.reduce.sum = lambda each, tensor: self._sum(each, tensor)
        self.reduce.min_max = lambda each, *args, **kwargs: self._min_max(each, *args, **kwargs)
        self.scan.cumsum = lambda each, tensor: self._scanned(each, tensor, "cumsum", np.add)
        self.scan.cumprod = lambda each, tensor: self._scanned(each, tensor, "cumprod", np.multiply)

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


def _in_pairs(data: Array, axis: int, add: Callable[[Array, Array], Array]) -> Array:
    rows: Array = np.moveaxis(data, axis, 0)
    while len(rows) > 1:
        half = len(rows) // 2
        rows = np.concatenate([add(rows[:half], rows[half : 2 * half]), rows[2 * half :]])
    total: Array = rows[0]
    return total


def _without_refusal(find: Any) -> Any:
    if find not in LEFTMOST:
        return find
    plain, instead = LEFTMOST[find]

    def found(data: Array, **kwargs: Any) -> Any:
        if data.dtype.kind == "f":
            data = np.where(np.isnan(data), data.dtype.type(instead), data)
        return plain(data, **kwargs)

    return found
