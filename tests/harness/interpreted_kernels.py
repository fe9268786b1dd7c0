"""Kernels whose results show how Triton's interpreter computes. Run as a program, prints what each found, as JSON.

``TRITON_INTERPRET=1 python tests/harness/interpreted_kernels.py [original]``; ``original``: Triton's own interpreter.
``python tests/harness/interpreted_kernels.py cuda`` compiles them and runs them on a GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from kgbench.harness.candidate.interpreter.patch import patch

FOUND: dict[str, Callable[[], Any]] = {}
DENORMAL = 1e-40


def finding(function: Callable[[], Any]) -> Callable[[], Any]:
    FOUND[function.__name__] = function
    return function


@triton.jit
def pointwise(x, y, out, OP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "add":
        found = a + b
    elif OP == "mul":
        found = a * b
    elif OP == "neg":
        found = -a
    elif OP == "maximum":
        found = tl.maximum(a, b)
    elif OP == "less":
        found = (a < b).to(tl.int32)
    elif OP == "cast":
        found = a
    elif OP == "floor":
        found = tl.floor(a)
    elif OP == "exp2":
        found = tl.exp2(a)
    elif OP == "sqrt":
        found = tl.sqrt(a)
    elif OP == "rsqrt":
        found = tl.rsqrt(a)
    elif OP == "exp":
        found = tl.exp(a)
    elif OP == "sum":
        found = tl.sum(a, axis=0) + tl.zeros_like(a)
    elif OP == "max":
        found = tl.max(a, axis=0) + tl.zeros_like(a)
    elif OP == "argmax":
        found = tl.argmax(a, axis=0) + tl.zeros_like(i)
    else:
        found = tl.cumsum(a, axis=0)
    tl.store(out + i, found.to(out.dtype.element_ty))


def computed(op: str, x: list[float], y: list[float], dtype: torch.dtype, out: torch.dtype) -> list[float]:
    """The operation on values of a dtype, as numbers of another."""
    left, right = torch.tensor(x, dtype=dtype), torch.tensor(y, dtype=dtype)
    result = torch.zeros(len(x), dtype=out)
    pointwise[(1,)](left, right, result, OP=op, BLOCK=len(x))
    return [float(each) for each in result.double()]


def of_bfloat16(op: str, x: list[float], y: list[float]) -> list[float]:
    return computed(op, x, y, torch.bfloat16, torch.float32)


def of_float32(op: str, x: list[float], out: torch.dtype = torch.float32) -> list[float]:
    return computed(op, x, x, torch.float32, out)


@finding
def bfloat16_arithmetic() -> Any:
    x, y = [1.0, 1.0, -3.0, 100.0], [2.0**-8, 3 * 2.0**-8, 2.5, 1.5]
    return {op: of_bfloat16(op, x, y) for op in ("add", "mul", "neg", "maximum", "less")}


@finding
def bfloat16_reductions() -> Any:
    x = [-1.0, -2.0, 256.0, 1.0]
    return {op: of_bfloat16(op, x, x) for op in ("sum", "max", "argmax", "cumsum")}


@triton.jit
def linear(a, b, c, d):
    """Two steps x -> a x + b after one another, the first ones before."""
    return a * c, b * c + d


@triton.jit
def last_of(a, b):
    return b


@triton.jit
def larger(a, b):
    if a > b:
        return a
    return b


@triton.jit
def combined(x, y, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    factors, steps = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 1, linear)
    tl.store(out + at, steps)
    total = tl.reduce(factors, 1, last_of)
    tl.store(out + ROWS * COLUMNS + tl.arange(0, ROWS), total)
    tl.store(out + ROWS * COLUMNS + ROWS + tl.arange(0, ROWS), tl.reduce(factors, 1, larger))


@finding
def combine_functions() -> Any:
    x, y = torch.tensor([[2.0, 0.5, 3.0, 1.0]] * 2), torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0]])
    out = torch.zeros(12)
    combined[(1,)](x, y, out, ROWS=2, COLUMNS=4)
    return out.tolist()


@finding
def float16_sum() -> Any:
    """2048 and ones one by one in float16 is 2048; in pairs the ones count as 2."""
    x = [2048.0, 1.0, 1.0, 1.0]
    return computed("sum", x, x, torch.float16, torch.float32)[0]


@finding
def conversions() -> Any:
    x = [1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, float("nan"), -(2.0**-133) * 1.5]
    large = [1e20, -1e20, float("nan"), 300.7]
    return {
        "bfloat16": of_float32("cast", x, torch.bfloat16),
        "float64 to bfloat16": computed("cast", [1 + 2**-8 + 2**-40] * 2, [0.0] * 2, torch.float64, torch.bfloat16),
        "int32 to bfloat16": computed("cast", [257, 259], [0, 0], torch.int32, torch.bfloat16),
        "float8_e4m3fn": of_float32("cast", [17.0, 19.0, 500.0, float("nan")], torch.float8_e4m3fn),
        "float8_e5m2": of_float32("cast", [9.0, 11.0, 1e9, 2.0**-17], torch.float8_e5m2),
        "from float8_e4m3fn": computed("cast", [float("nan"), 448.0], [0.0] * 2, torch.float8_e4m3fn, torch.float32),
        "int32": of_float32("cast", large, torch.int32),
        "int64": of_float32("cast", large, torch.int64),
        "uint8": of_float32("cast", [-1.0, 255.9, float("nan"), 3.0], torch.uint8),
    }


@finding
def flushes() -> Any:
    found = {op: of_float32(op, [-DENORMAL])[0] for op in ("floor", "sqrt", "rsqrt")}
    return {**found, "exp2": of_float32("exp2", [-130.0])[0], "exp": of_float32("exp", [-90.0])[0] > 0}


@finding
def nan_alone_has_an_index() -> Any:
    return of_float32("argmax", [float("nan")] * 2)


@triton.jit
def added(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i * 0, tl.load(x + i))


@finding
def atomics() -> Any:
    flushed = torch.full((1,), DENORMAL)
    added[(1,)](torch.full((4,), DENORMAL), flushed, BLOCK=4)
    narrow = torch.full((1,), 256.0, dtype=torch.bfloat16)
    added[(1,)](torch.ones(4, dtype=torch.bfloat16), narrow, BLOCK=4)
    return [flushed.item(), narrow.item()]


@triton.jit
def scalars(out, n, alpha, small, wide: tl.float64, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    # A truth value from a scalar is part of a mask.
    kept = (i < BLOCK) & (n != 0) & (alpha != 0)
    tl.store(out + i, alpha.to(tl.float64) * 3, mask=kept)
    tl.store(out, wide)
    tl.store(out + 1, (n * 2).to(tl.float64))
    tl.store(out + 2, (small + 1).to(tl.float64))


@finding
def arguments() -> Any:
    out = torch.zeros(4, dtype=torch.float64)
    scalars[(1,)](out, 2**31 - 1, 0.1, 2**40, 0.1, BLOCK=4)
    return out.tolist()


@triton.jit
def sizes(out, n, m, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, i * n + m, mask=(i < BLOCK * n) & (n != 0) & (i >= n - m))


@triton.jit
def typed_size(out, n):
    tl.store(out, n.to(tl.int64))


@triton.jit(do_not_specialize=["n"])
def kept_size(out, n):
    tl.store(out, n.to(tl.int64))


@finding
def sizes_of_one() -> Any:
    out = torch.zeros(4, dtype=torch.int64)
    sizes[(1,)](out, 1, 1, BLOCK=4)
    found: list[Any] = out.tolist()
    kept_size[(1,)](out, 1)
    found.append(out[0].item())
    typed_size[(1,)](out, 2)
    found.append(out[0].item())
    try:
        typed_size[(1,)](out, 1)
    except Exception as error:
        found.append("no attribute 'to'" in str(error))
    return found


@triton.jit
def loops(out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        far = k.to(tl.int64) * 2147483647
        tl.store(out + k + i * 0, far, mask=(i < 1) & (k != 1))
    for k in tl.range(0, 2):
        # 2 ** 30 * 4 wraps in 32 bits, for the loop's variable has 32.
        tl.store(out + 4 + k, ((k + 1073741824) * 4).to(tl.int64))
    for k in tl.static_range(2):
        tl.store(out + 6 + k, tl.full((), k, tl.int64))


@finding
def loop_variables() -> Any:
    out = torch.full((8,), -7, dtype=torch.int64)
    loops[(1,)](out, 4, BLOCK=4)
    return out.tolist()


@triton.jit
def product(x, y, out, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + i, tl.dot(tl.load(x + i), tl.load(y + i), input_precision=PRECISION))


@finding
def products() -> Any:
    x = torch.eye(16) * (1 + 2.0**-12)
    found = {}
    for precision in ("tf32", "ieee"):
        out = torch.zeros(16, 16)
        product[(1,)](x, torch.eye(16), out, PRECISION=precision, BLOCK=16)
        found[precision] = out[3, 3].item()
    for dtype in (torch.bfloat16, torch.float16):
        out = torch.zeros(16, 16)
        product[(1,)]((torch.eye(16) * 3).to(dtype), torch.eye(16).to(dtype), out, PRECISION="tf32", BLOCK=16)
        found[str(dtype)] = out[3, 3].item()
    return found


@finding
def smallest_products() -> Any:
    """float16 with 8 products in each sum, which the compiler refuses."""
    x = torch.eye(8).to(torch.float16)
    try:
        product[(1,)](x, x, torch.zeros(8, 8), PRECISION="tf32", BLOCK=8)
    except Exception as error:
        return "K >= 16" in str(error)
    return "launched"


@triton.jit
def nothing(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 0.0)


@finding
def largest_grid() -> Any:
    try:
        nothing[(1, 65536)](torch.zeros(4), BLOCK=4)
    except Exception as error:
        return str(error)
    return "launched"


@triton.jit
def assembly(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    found = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + i, found.to(tl.float32))


@finding
def types_of_values() -> Any:
    """Each type twice: what is made once must be what was made anew."""
    found = []
    pointer = tl.pointer_type(tl.float16)
    for element in (tl.float32, tl.int1, pointer, tl.pointer_type(tl.float16, const=True), pointer):
        for shape in ([4], tl.tuple([tl.constexpr(2), tl.constexpr(8)]), [4, 1], [4]):
            kind = tl.block_type(element, shape)
            value = tl.tensor(None, kind)
            sizes = [each.value for each in value.shape]
            found.append([str(kind), kind.mangle(), str(value.dtype), sizes, value.numel.value])
    scalar = tl.tensor(None, tl.int32)
    found.append([str(scalar.type), str(scalar.dtype), len(scalar.shape), scalar.numel.value])
    for shape in ([3], [], [0.5]):
        try:
            tl.block_type(tl.float32, shape)
        except (ValueError, TypeError) as error:
            found.append(type(error).__name__)
    return found


@finding
def what_is_lacking() -> Any:
    try:
        assembly[(1,)](torch.zeros(4), BLOCK=4)
    except Exception as error:
        return type(error.__cause__).__name__
    return "ran"


@finding
def copies_by_pytorch() -> Any:
    out = torch.zeros(4)
    with torch.profiler.profile() as seen:
        nothing[(1,)](out, BLOCK=4)
    return sorted({event.key for event in seen.key_averages() if "copy" in event.key})


def main() -> None:
    if sys.argv[1:] == ["cuda"]:
        torch.set_default_device("cuda")
    elif sys.argv[1:] != ["original"] and not patch():
        raise SystemExit("TRITON_INTERPRET is not 1")
    found = {}
    for name, find in FOUND.items():
        try:
            found[name] = find()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
