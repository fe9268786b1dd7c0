"""index_select: a tile of the result loads the indices of its rows or of its columns once, then moves what they name.

Strides are taken as they are, and elements move as integers of their size.
"""

import math

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


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
    index_ptr, x_ptr, out_ptr, step, rows, n, sizes, index_strides, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BY_ROW: tl.constexpr, BY_COLUMN: tl.constexpr,
):  # fmt: skip
    """``step``: x's stride along the dimension, in ``x_strides`` 0."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    # Merged dimensions that leave the index as it is: then one of it serves a row, or a column.
    index_row = tl.zeros((1, 1), tl.int64) if BY_COLUMN else row
    index_column = tl.zeros((1, 1), tl.int64) if BY_ROW else column
    index_at = index_ptr + _place(index_row, index_column, sizes, index_strides, DIMS)
    chosen = tl.load(index_at, mask=(index_row < rows) & (index_column < n), other=0).to(tl.int64)
    x_at = _place(row, column, sizes, x_strides, DIMS) + chosen * step
    x = tl.load(x_ptr + x_at, mask=inside)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), x, mask=inside)


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


def index_select(self, dim, index):
    """A new row-major tensor; ``index`` has one dimension or none."""
    # A tensor without dimensions counts as one of one element.
    x = (self if self.ndim else self.reshape(1)).resolve_conj()
    index = index.reshape(-1)
    dim %= x.ndim
    out = torch.empty((*x.shape[:dim], index.numel(), *x.shape[dim + 1 :]), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    y = out
    if x.dtype == torch.complex128:
        x, y = torch.view_as_real(x), torch.view_as_real(y)
    x, y = (each.view(_SAME_SIZE[each.element_size()]) for each in (x, y))
    x_strides = tuple(0 if each == dim else step for each, step in enumerate(x.stride()))
    index_strides = tuple(index.stride(0) if each == dim else 0 for each in range(x.ndim))
    sizes, *strides = _merged(y.shape, index_strides, x_strides, y.stride())
    by_row = strides[0][-1] == 0
    by_column = not by_row and not any(strides[0][:-1])
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = max(1024, min(4096, 8192 // y.element_size())) if y.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), 1024 if y.is_cuda else block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        index, x, y, x.stride(dim), rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, BY_ROW=by_row, BY_COLUMN=by_column,
    )  # fmt: skip
    return out if self.ndim else out.view(())
