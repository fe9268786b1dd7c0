"""Operations of Triton's interpreter with the results that the compiler's code has on an H100 or H200.

Each function stands in place of a method of ``InterpreterBuilder``, whose own it may call; docs/interpreter.md says
what that one gets wrong. Numbers of formats that numpy lacks lie in unsigned integers: methods of the original compute
with these integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kgbench.harness.candidate.interpreter.formats import (
    FORMATS,
    Array,
    Format,
    decode,
    encode,
    flushed,
    round_float,
    to_integer,
    truncated_to_tf32,
)

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "create_icmpEQ": np.equal, "create_icmpNE": np.not_equal,
    "create_icmpSLE": np.less_equal, "create_icmpSLT": np.less,
    "create_icmpSGE": np.greater_equal, "create_icmpSGT": np.greater,
    "create_icmpULE": np.less_equal, "create_icmpULT": np.less,
    "create_icmpUGE": np.greater_equal, "create_icmpUGT": np.greater,
    "create_fcmpOEQ": np.equal, "create_fcmpUNE": np.not_equal,
    "create_fcmpOLE": np.less_equal, "create_fcmpOLT": np.less,
    "create_fcmpOGE": np.greater_equal, "create_fcmpOGT": np.greater,
}  # fmt: skip
"""Comparisons that Triton's operators make, by the builder's methods."""
FLUSHING: Final = (
    "create_floor", "create_ceil", "create_exp2", "create_sqrt", "create_rsqrt", "create_sin", "create_cos",
    "create_erf",
)  # fmt: skip
"""Methods whose instructions for float32 take and give zero in place of what is below the smallest normal number:
``cvt.rmi.ftz``, ``cvt.rpi.ftz``, ``ex2.approx.ftz``, ``sqrt.approx.ftz``, ``rsqrt.approx.ftz``, and ``.ftz`` in all of
libdevice."""


class NotInterpretable(Exception):
    """The interpreter cannot do what a kernel asks of it."""


def _smallest_products() -> Callable[[Any, Any], tuple[int, int, int]] | None:
    """The least sizes m, n and k that ``tl.dot`` of two types takes on an H100 or H200; None where Triton has no such
    rule. The interpreter takes any.
    """
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia import compiler

    rule: Any = getattr(compiler, "min_dot_size", None)
    return None if rule is None else rule(GPUTarget("cuda", 90, 32))


def format_of(dtype: Any) -> Format | None:
    """The format of a Triton type that numpy lacks; None for others."""
    return FORMATS.get(getattr(dtype.scalar, "name", ""))


def numbers_of(handle: Any) -> Array:
    """A handle's numbers in a type that numpy computes with."""
    form = format_of(handle.dtype)
    data: Array = handle.data
    return decode(data, form) if form is not None and data.dtype == form.storage else data


class Arithmetic:
    """Replacements for methods of ``InterpreterBuilder``; ``module`` is ``triton.runtime.interpreter``."""

    def __init__(self, module: Any) -> None:
        self.handle = module.TensorHandle
        self.np_dtype = module._get_np_dtype
        self.ir = module._ir
        self.interpreter = module._interpreter
        self.tl = module.tl
        self.builder = module.InterpreterBuilder
        self.chosen = module.interpreter_builder.codegen_fns
        self.original = {name: getattr(self.builder, name) for name in dir(self.builder) if not name.startswith("__")}

    def install(self) -> None:
        """Put the replacements into the class."""
        for name, compare in COMPARISONS.items():
            setattr(self.builder, name, self._comparing(compare))
        for name in FLUSHING:
            setattr(self.builder, name, self._flushing(self.original[name]))
        for name in ("create_extern_elementwise", "create_inline_asm"):
            setattr(self.builder, name, _refusing(name.removeprefix("create_")))
        for name in (
            "binary_op", "unary_op", "cast_impl", "create_fp_to_fp", "create_fma", "create_clampf", "create_dot",
            "create_atomic_rmw",
        ):  # fmt: skip
            replacement = getattr(self, f"_{name}")
            setattr(self.builder, name, lambda builder, *args, call=replacement: call(builder, *args))
        if (smallest := _smallest_products()) is not None:
            self.chosen["min_dot_size"] = smallest

    # --- elementwise ---

    def _comparing(self, compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        """The original's result has the operands' type, and as a mask is refused."""

        def method(_: Any, lhs: Any, rhs: Any) -> Any:
            return self.handle(compare(numbers_of(lhs), numbers_of(rhs)), self.tl.int1)

        return method

    def _flushing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def method(builder: Any, arg: Any) -> Any:
            found = original(builder, self.handle(flushed(arg.data), arg.dtype))
            return self.handle(flushed(found.data), found.dtype)

        return method

    def _binary_op(self, builder: Any, lhs: Any, rhs: Any, op: Callable[[Any, Any], Any]) -> Any:
        form = format_of(lhs.dtype)
        if form is None or lhs.data.dtype != form.storage:
            return self.original["binary_op"](builder, lhs, rhs, op)
        return self._rounded(op(numbers_of(lhs), numbers_of(rhs)), lhs.dtype, form)

    def _unary_op(self, builder: Any, arg: Any, op: Callable[[Any], Any]) -> Any:
        form = format_of(arg.dtype)
        if form is None:
            return self.original["unary_op"](builder, arg, op)
        return self._rounded(op(numbers_of(arg)), arg.dtype, form)

    def _create_fma(self, builder: Any, x: Any, y: Any, z: Any) -> Any:
        form = format_of(z.dtype)
        if form is None:
            return self.original["create_fma"](builder, x, y, z)
        # A product of two such numbers is exact in float64, and so, but for far ones, is the sum.
        wide = [numbers_of(each).astype(np.float64) for each in (x, y, z)]
        return self._rounded(wide[0] * wide[1] + wide[2], z.dtype, form)

    def _create_clampf(self, builder: Any, arg: Any, low: Any, high: Any, propagate_nans: Any) -> Any:
        form = format_of(arg.dtype)
        if form is None:
            return self.original["create_clampf"](builder, arg, low, high, propagate_nans)
        ignores_nan = propagate_nans == self.ir.PROPAGATE_NAN.NONE
        smaller, larger = (np.fmin, np.fmax) if ignores_nan else (np.minimum, np.maximum)
        return self._rounded(smaller(larger(numbers_of(arg), numbers_of(low)), numbers_of(high)), arg.dtype, form)

    def _rounded(self, numbers: Array, dtype: Any, form: Format) -> Any:
        return self.handle(encode(numbers, form), dtype.scalar)

    # --- conversions ---

    def _cast_impl(self, builder: Any, source: Any, target: Any) -> Any:
        return self._converted(builder, source, target, to_zero=False)

    def _create_fp_to_fp(self, builder: Any, source: Any, target: Any, rounding: Any) -> Any:
        known = FORMATS.keys() | {"fp16", "fp32", "fp64"}
        if not {source.dtype.scalar.name, target.scalar.name} <= known:
            return self.original["create_fp_to_fp"](builder, source, target, rounding)
        return self._converted(builder, source, target, to_zero=rounding == self.ir.ROUNDING_MODE.RTZ)

    def _converted(self, builder: Any, source: Any, target: Any, to_zero: bool) -> Any:
        scalar = target.scalar
        form, numbers = format_of(scalar), numbers_of(source)
        if form is not None:
            return self.handle(encode(numbers, form, to_zero), scalar)
        wanted = self.np_dtype(scalar)
        if numbers.dtype.kind == "f" and wanted.kind in "iu":
            return self.handle(to_integer(numbers, wanted), scalar)
        if numbers.dtype.kind == "f" and wanted.kind == "f":
            return self.handle(round_float(numbers, wanted, to_zero), scalar)
        return self.original["cast_impl"](builder, source, target)

    # --- products and memory ---

    def _create_dot(self, builder: Any, a: Any, b: Any, acc: Any, input_precision: Any, *rest: Any) -> Any:
        """16-bit operands are multiplied and summed in float32; float32 ones have 10 bits where TF32 is allowed."""
        left, right = numbers_of(a), numbers_of(b)
        in_tf32 = input_precision == self.ir.INPUT_PRECISION.TF32
        if left.dtype == np.float16:
            left, right = left.astype(np.float32), right.astype(np.float32)
        elif a.data.dtype == np.float32 and in_tf32:
            left, right = truncated_to_tf32(left), truncated_to_tf32(right)
        elif left.dtype.kind in "iu":
            return self.original["create_dot"](builder, a, b, acc, input_precision, *rest)
        total = np.matmul(left, right) + acc.data
        return self.handle(total.astype(acc.data.dtype), acc.dtype.scalar)

    def _create_atomic_rmw(self, builder: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        """``atom.add.f32`` flushes; the original knows no bfloat16."""
        form = format_of(val.dtype)
        if form is not None:
            return self._narrow_atomic(op, ptr, val, mask, form)
        original = self.original["create_atomic_rmw"]
        if op != self.ir.ATOMIC_OP.FADD or val.data.dtype != np.float32:
            return original(builder, op, ptr, val, mask, *rest)
        self._flush_memory(ptr, mask)
        found = original(builder, op, ptr, self.handle(flushed(val.data), val.dtype), mask, *rest)
        self._flush_memory(ptr, mask)
        return found

    def _flush_memory(self, ptr: Any, mask: Any) -> None:
        ptrs, chosen = np.broadcast_arrays(ptr.data, mask.data)
        ptrs, chosen = np.ascontiguousarray(ptrs), np.ascontiguousarray(chosen)
        held = self.interpreter.load(ptrs, chosen, np.zeros(ptrs.shape, np.float32), np.dtype(np.float32))
        clean = flushed(held)
        if not np.array_equal(held.view(np.uint32), clean.view(np.uint32)):
            self.interpreter.store(ptrs, np.ascontiguousarray(clean), chosen)

    def _narrow_atomic(self, op: Any, ptr: Any, val: Any, mask: Any, form: Format) -> Any:
        """One element after the other, since several may have one address."""
        kind = self.ir.ATOMIC_OP
        operations: dict[Any, Any] = {kind.FADD: np.add, kind.XCHG: lambda _, new: new}
        operation = next((each for key, each in operations.items() if key == op), None)
        if operation is None:
            raise NotImplementedError(f"atomic {op} of {val.dtype.scalar.name}")
        ptrs, values, chosen = np.broadcast_arrays(ptr.data, val.data, mask.data)
        found = np.zeros(ptrs.shape, form.storage)
        yes, zero, dtype = np.ones(1, bool), np.zeros(1, form.storage), np.dtype(form.storage)
        for place in np.ndindex(ptrs.shape):
            if not chosen[place]:
                continue
            where = np.array([ptrs[place]], np.uint64)
            old = self.interpreter.load(where, yes, zero, dtype)
            new = operation(decode(old, form), decode(np.array([values[place]], form.storage), form))
            self.interpreter.store(where, encode(new.astype(np.float32), form), yes)
            found[place] = old[0]
        return self.handle(found, val.dtype.scalar)


def _refusing(what: str) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        raise NotInterpretable(f"Triton's interpreter has no {what}")

    return method
