"""mul.Tensor and mul.Scalar: self * other with broadcasting and type promotion; integers wrap.

Strides of all tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl

_TYPES = {
    torch.float64: (tl.float64, tl.float64),
    torch.float32: (tl.float32, tl.float32),
    torch.float16: (tl.float16, tl.float32),
    torch.bfloat16: (tl.bfloat16, tl.float32),
    torch.int64: (tl.int64, tl.int64),
    torch.int32: (tl.int32, tl.int32),
    torch.int16: (tl.int16, tl.int32),
    torch.int8: (tl.int8, tl.int32),
    torch.uint8: (tl.uint8, tl.int32),
    torch.bool: (tl.uint8, tl.int32),
}
"""The operands' common dtype, and that in which it is computed with."""


@triton.jit
def _converted(x, COMMON: tl.constexpr, WIDE: tl.constexpr):
    if x.dtype == COMMON:
        return x.to(WIDE)
    if tl.float32 == WIDE:
        # By way of float32, from which every dtype can be reached.
        x = x.to(tl.float32)
    return x.to(COMMON).to(WIDE)


@triton.jit
def _place(row, column, sizes, strides, DIMS: tl.constexpr):
    """Where elements lie: columns count through the last dimension, rows through the others."""
    at = column * strides[DIMS - 1]
    for back in tl.static_range(2, DIMS + 1):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    return at


@triton.jit
def _tile(
    a_ptr, b_ptr, out_ptr, rows, n, sizes, a_strides, b_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, NUMBER: tl.constexpr, COMMON: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    a = tl.load(a_ptr + _place(row, column, sizes, a_strides, DIMS), mask=inside, other=0)
    a = _converted(a, COMMON, WIDE)
    if NUMBER:
        # Not a pointer then, but the number.
        b = tl.full(a.shape, b_ptr, WIDE)
    else:
        b = tl.load(b_ptr + _place(row, column, sizes, b_strides, DIMS), mask=inside, other=1)
        b = _converted(b, COMMON, WIDE)
    y = a * b
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _mul_complex(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr, PAIRS: tl.constexpr):
    """a: real and imaginary parts in turn; b too, if PAIRS, else real numbers; all without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(a_ptr + 2 * i, mask=inside)
    a_imaginary = tl.load(a_ptr + 2 * i + 1, mask=inside)
    if PAIRS:
        b = tl.load(b_ptr + 2 * i, mask=inside)
        b_imaginary = tl.load(b_ptr + 2 * i + 1, mask=inside)
        real = a * b - a_imaginary * b_imaginary
        imaginary = a * b_imaginary + a_imaginary * b
    else:
        # Not by an imaginary part of 0: an infinity times it would be NaN.
        b = tl.load(b_ptr + i, mask=inside)
        real = a * b
        imaginary = a_imaginary * b
    tl.store(out_ptr + 2 * i, real, mask=inside)
    tl.store(out_ptr + 2 * i + 1, imaginary, mask=inside)


def _merged(shape, *strides):
    """Sizes and strides in the order of the last operand's memory, neighbours merged where every operand allows it."""
    dims = [dim for dim in zip(shape, *strides, strict=True) if dim[0] != 1] or [(1,) * (1 + len(strides))]
    dims.sort(key=lambda dim: -dim[-1])
    merged = dims[:1]
    for size, *steps in dims[1:]:
        if all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    return tuple(zip(*merged, strict=True))


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _number(value, dtype, device):
    """``value`` as a kernel takes it: integers wrapped to ``dtype``; as an argument it would be float32 at most."""
    if dtype == torch.float64:
        return torch.full((), value, dtype=dtype, device=device)
    if dtype.is_floating_point:
        return float(value)
    bits = 8 * dtype.itemsize
    low = -(1 << bits - 1) if dtype.is_signed else 0
    return (int(value) - low) % (1 << bits) + low


def _real(out, a, b, dtype):
    """``b`` is a tensor or a number; both are converted to ``dtype``, which is not complex, first."""
    if out.numel() == 0:
        return out
    common, wide = _TYPES[dtype]
    number = not isinstance(b, torch.Tensor)
    a = a.expand(out.shape)
    # A number has no strides; a's stand in for them.
    b = b if number else _bytes_if_bool(b.expand(out.shape))
    sizes, *strides = _merged(out.shape, a.stride(), a.stride() if number else b.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // max(a.element_size(), out.element_size()) if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        _bytes_if_bool(a), b, _bytes_if_bool(out), rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, NUMBER=number, COMMON=common, WIDE=wide,
    )  # fmt: skip
    return out


def _complex(out, a, b):
    """``a`` or ``b`` is complex, of any strides and, if they have none, without dimensions."""
    if out.numel() == 0:
        return out
    a, b = (a, b) if a.is_complex() else (b, a)
    pairs = b.is_complex()
    a = a.to(out.dtype).expand(out.shape).contiguous()
    b = b.to(out.dtype if pairs else out.dtype.to_real()).expand(out.shape).contiguous()
    a, b, y = (torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in (a, b, out))
    block = 1024 if out.is_cuda else 1 << 16
    _mul_complex[(triton.cdiv(out.numel(), block),)](a, b, y, out.numel(), BLOCK=block, PAIRS=pairs)
    return out


def mul_Tensor(self, other):
    """In the promoted dtype; of truth values the logical and."""
    dtype = torch.result_type(self, other)
    out = torch.empty(torch.broadcast_shapes(self.shape, other.shape), dtype=dtype, device=self.device)
    return _complex(out, self, other) if dtype.is_complex else _real(out, self, other, dtype)


def mul_Scalar(self, other):
    """With a number, in the promoted dtype."""
    dtype = torch.result_type(self, other)
    out = torch.empty(self.shape, dtype=dtype, device=self.device)
    if dtype.is_complex:
        part = dtype if complex(other).imag else dtype.to_real()
        # torch.full refuses what the narrower dtype does not hold; rounded it is infinite.
        number, wide = (other, torch.complex128) if part == dtype else (complex(other).real, torch.float64)
        number = torch.full((), number, dtype=wide, device=self.device).to(part)
        return _complex(out, self, number)
    return _real(out, self, _number(other, dtype, self.device), dtype)
