"""hardsigmoid: (x + 3) / 6, held between 0 and 1; float32 inside, float64 for float64.

Strides of both tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _hardsigmoid(x):
    # Comparisons that are false for NaN leave it as it is.
    y = x + 3.0
    y = tl.where(y < 0.0, 0.0, y)
    y = tl.where(y > 6.0, 6.0, y)
    return y * 0.16666666666666666


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
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0)
    y = _hardsigmoid(x.to(WIDE)).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), y, mask=inside)


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
    sizes, *strides = _merged(out.shape, x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        x, out, rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, WIDE=tl.float64 if out.dtype == torch.float64 else tl.float32,
    )  # fmt: skip
    return out


def hardsigmoid(self):
    """A new tensor of the input's shape and dtype, in its memory order where that has no gaps."""
    return _filled(torch.empty_like(self), self)


def hardsigmoid_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self)
