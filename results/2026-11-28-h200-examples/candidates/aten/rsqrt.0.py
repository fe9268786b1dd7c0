"""rsqrt: 1 / sqrt(x) in float32 (float64 for float64) and rounded once, complex numbers by way of float64."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _rsqrt(x):
    if x.dtype == tl.float64:
        return 1.0 / tl.sqrt(x)
    # Below 2**-64 it is scaled by 2**64, and its result by 2**32: the hardware takes denormal numbers for zeros.
    tiny = tl.abs(x) < 5.421010862427522e-20
    y = tl.rsqrt(tl.where(tiny, x * 18446744073709551616.0, x))
    return tl.where(tiny, y * 4294967296.0, y)


@triton.jit
def _rsqrt_complex(x, y):
    """1 / (c + id), where c + id is the root of x + iy with c >= 0."""
    size = tl.sqrt(x * x + y * y)
    larger = tl.sqrt(0.5 * (size + tl.abs(x)))
    zero = larger == 0.0
    smaller = tl.where(zero, 0.0, tl.abs(y) / tl.where(zero, 1.0, 2.0 * larger))
    c = tl.where(x >= 0.0, larger, smaller)
    d = tl.where(x >= 0.0, smaller, larger)
    d = tl.where(y.to(tl.int64, bitcast=True) < 0, -d, d)
    # Smith's division: by the larger part first.
    flat = tl.abs(c) >= tl.abs(d)
    ratio = tl.where(flat, d, c) / tl.where(flat, c, d)
    inverse = 1.0 / (tl.where(flat, c, d) + tl.where(flat, d, c) * ratio)
    real = tl.where(flat, inverse, ratio * inverse)
    imaginary = tl.where(flat, -ratio * inverse, -inverse)
    origin = (c == 0.0) & (d == 0.0)
    any_nan = (x != x) | (y != y)
    real = tl.where(any_nan, float("nan"), tl.where(origin, float("inf"), real))
    return real, tl.where(any_nan | origin, float("nan"), imaginary)


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
    x_ptr, out_ptr, rows, n, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x_at = x_ptr + _place(row, column, sizes, x_strides, DIMS)
    out_at = out_ptr + _place(row, column, sizes, out_strides, DIMS)
    x = tl.load(x_at, mask=inside, other=0)
    if COMPLEX:
        real, imaginary = _rsqrt_complex(x.to(tl.float64), tl.load(x_at + 1, mask=inside, other=0).to(tl.float64))
        tl.store(out_at, real.to(out_ptr.dtype.element_ty), mask=inside)
        tl.store(out_at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        wide = tl.float64 if x.dtype == tl.float64 else tl.float32
        tl.store(out_at, _rsqrt(x.to(wide)).to(out_ptr.dtype.element_ty), mask=inside)


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


def _filled(out, x):
    if out.numel() == 0:
        return out
    shape, pair = out.shape, out.is_complex()
    y = torch.view_as_real(out) if pair else out
    if pair:
        x = torch.view_as_real(x.resolve_conj())
    elif x.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        x = x.view(torch.uint8)
    sizes, *strides = _merged(shape, *(each.stride()[: len(shape)] for each in (x, y)))
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, y, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, COMPLEX=pair)
    return out


def rsqrt(self):
    """A new tensor of the input's shape and dtype; float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self)
