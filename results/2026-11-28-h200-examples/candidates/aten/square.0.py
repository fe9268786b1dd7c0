"""square: each element times itself, in the input's dtype (int64 for truth values), complex ones by way of float64.

Strides of both tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _square_complex(x, y):
    return x * x - y * y, 2.0 * (x * y)


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
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMPLEX: tl.constexpr, BOOL: tl.constexpr,
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
        real, imaginary = _square_complex(x.to(tl.float64), tl.load(x_at + 1, mask=inside, other=0).to(tl.float64))
        tl.store(out_at, real.to(out_ptr.dtype.element_ty), mask=inside)
        tl.store(out_at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        wide = x.to(tl.float32) if x.dtype.is_floating() and x.dtype != tl.float64 else x
        if BOOL:
            wide = (x != 0).to(tl.int64)
        tl.store(out_at, (wide * wide).to(out_ptr.dtype.element_ty), mask=inside)


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
    shape, pair, truth = out.shape, out.is_complex(), x.dtype == torch.bool
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
    _tile[grid](x, y, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, COMPLEX=pair, BOOL=truth)
    return out


def square(self):
    """A new tensor of the input's shape and dtype, int64 for truth values."""
    dtype = torch.int64 if self.dtype == torch.bool else self.dtype
    return _filled(torch.empty_like(self, dtype=dtype), self)


def square_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self)
