"""sin: the sine in float32 (float64 for float64) and rounded once; of complex numbers by sinh and cosh in float64."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _sin(x):
    # Where sin(x) rounds to x, and for zeros with their sign, x itself.
    if x.dtype == tl.float64:
        return tl.where(x == 0, x, tl.sin(x))
    return tl.where(tl.abs(x) < 2.44140625e-4, x, tl.sin(x))


@triton.jit
def _sin_complex(x, y):
    """sin(x) cosh(y) + i cos(x) sinh(y)."""
    # Beyond 705 both overflow once they are rounded, but not yet here.
    y = tl.where(y > 705.0, 705.0, tl.where(y < -705.0, -705.0, y))
    e, inverse = tl.exp(y), tl.exp(-y)
    z = y * y
    series = 1.6666666666666666e-1 + z * (8.333333333333333e-3 + z * (1.984126984126984e-4 + z * 2.7557319223985893e-6))
    # The difference of two exponentials near 1 would lose digits.
    sinh = tl.where(tl.abs(y) < 0.3, y + y * z * series, 0.5 * (e - inverse))
    return tl.sin(x) * (0.5 * (e + inverse)), tl.cos(x) * sinh


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
        real, imaginary = _sin_complex(x.to(tl.float64), tl.load(x_at + 1, mask=inside, other=0).to(tl.float64))
        tl.store(out_at, real.to(out_ptr.dtype.element_ty), mask=inside)
        tl.store(out_at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        wide = tl.float64 if x.dtype == tl.float64 else tl.float32
        tl.store(out_at, _sin(x.to(wide)).to(out_ptr.dtype.element_ty), mask=inside)


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


def sin(self):
    """A new tensor of the input's shape and dtype; float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self)
