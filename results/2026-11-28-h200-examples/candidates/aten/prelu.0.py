"""prelu: x where it is above 0, elsewhere x times the weight of its channel; float32 inside, float64 for float64.

Strides of all tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


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
    x_ptr, weight_ptr, out_ptr, rows, n, sizes, x_strides, weight_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SHARED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    # Where one weight serves a whole row, it is loaded once.
    weight_column = tl.zeros((1, 1), tl.int64) if SHARED else column
    weight_at = weight_ptr + _place(row, weight_column, sizes, weight_strides, DIMS)
    weight = tl.load(weight_at, mask=row < rows if SHARED else inside).to(WIDE)
    y = tl.where(x > 0, x, x * weight)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), y.to(out_ptr.dtype.element_ty), mask=inside)


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


def prelu(self, weight):
    """A new tensor of the input's shape and dtype; ``weight`` has one element, or one for each of dimension 1."""
    out = torch.empty_like(self)
    if out.numel() == 0:
        return out
    channels = (1, -1, *(1,) * (self.ndim - 2)) if self.ndim > 1 else ()
    weight = weight.reshape(channels).expand(out.shape)
    sizes, *strides = _merged(out.shape, self.stride(), weight.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    wide = tl.float64 if out.dtype == torch.float64 else tl.float32
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        self, weight, out, rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, SHARED=strides[1][-1] == 0, WIDE=wide,
    )  # fmt: skip
    return out
