"""select_backward: every place of the result loads the gradient if it lies at the index, and is 0 otherwise.

Where fewer than 64 elements follow the dimension, the row-major result is filled as one line.
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


@triton.jit(do_not_specialize=["index"])
def _tile(
    g_ptr, out_ptr, index, rows, n, sizes, g_strides, index_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    # What each place has as its index along the dimension, whose stride in ``index_strides`` is 1, the others' 0.
    chosen = inside & (_place(row, column, sizes, index_strides, DIMS) == index)
    g = tl.load(g_ptr + _place(row, column, sizes, g_strides, DIMS), mask=chosen, other=0)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), g, mask=inside)


@triton.jit(do_not_specialize=["index"])
def _line(g_ptr, out_ptr, n, index, SIZE: tl.constexpr, INNER: tl.constexpr, BLOCK: tl.constexpr):
    """g (outer, INNER), out (outer, SIZE, INNER), both row-major."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    chosen = inside & (i // INNER % SIZE == index)
    g = tl.load(g_ptr + i // INNER // SIZE * INNER + i % INNER, mask=chosen, other=0)
    tl.store(out_ptr + i, g, mask=inside)


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


def select_backward(grad_output, input_sizes, dim, index):
    """A new row-major tensor of shape ``input_sizes``."""
    out = torch.empty(input_sizes, dtype=grad_output.dtype, device=grad_output.device)
    return select_backward_out(grad_output, input_sizes, dim, index, out=out)


def select_backward_out(grad_output, input_sizes, dim, index, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.numel() == 0:
        return out
    dim %= out.ndim
    size = out.shape[dim]
    index %= size
    g, y = (each.view(_SAME_SIZE[each.element_size()]) for each in (grad_output.resolve_conj(), out))
    inner, n = out.shape[dim + 1 :].numel(), out.numel()
    block = 4096 // y.element_size() if y.is_cuda else 1 << 16
    if inner < 64 and n >= 1 << 20 and g.is_contiguous() and y.is_contiguous():
        _line[(triton.cdiv(n, block),)](g, y, n, index, SIZE=size, INNER=inner, BLOCK=block)
        return out
    g_strides = (*g.stride()[:dim], 0, *g.stride()[dim:])
    index_strides = tuple(int(each == dim) for each in range(y.ndim))
    sizes, *strides = _merged(y.shape, g_strides, index_strides, y.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](g, y, index, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns)
    return out
