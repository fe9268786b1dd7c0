"""select_backward: every place of the result loads the gradient if it lies at the index, and is 0 otherwise.

Where fewer than 64 elements follow the dimension, the row-major result is filled as one line.
"""

import math
import operator

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _program(LARGE: tl.constexpr):
    """LARGE: elements are counted in 64 bits, in which divisions are slow."""
    return tl.program_id(0).to(tl.int64) if LARGE else tl.program_id(0)


@triton.jit(do_not_specialize=["index", "rows", "blocks"])
def _tile(
    g_ptr, out_ptr, index, rows, n, blocks, sizes, g_strides, out_strides,
    DIMS: tl.constexpr, DIM: tl.constexpr, LARGE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Columns count through the last dimension, rows through the others; DIM is the one with the index, -1 for none."""
    program = _program(LARGE)
    row = (program // blocks * ROWS + tl.arange(0, ROWS))[:, None]
    column = (program % blocks * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    inside = (row < rows) & (column < n)
    chosen = inside & (column == index) if DIMS - 1 == DIM else inside
    g_at, out_at = column * g_strides[DIMS - 1], column * out_strides[DIMS - 1]
    for back in tl.static_range(2, DIMS + 1):
        place = row % sizes[DIMS - back] if back < DIMS else row
        row = row // sizes[DIMS - back]
        chosen = chosen & (place == index) if DIMS - back == DIM else chosen
        g_at += place * g_strides[DIMS - back]
        out_at += place * out_strides[DIMS - back]
    tl.store(out_ptr + out_at, tl.load(g_ptr + g_at, mask=chosen, other=0), mask=inside)


@triton.jit(do_not_specialize=["index"])
def _line(
    g_ptr, out_ptr, n, index, SIZE: tl.constexpr, INNER: tl.constexpr, LARGE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """g (outer, INNER), out (outer, SIZE, INNER), both row-major."""
    i = _program(LARGE) * BLOCK + tl.arange(0, BLOCK)
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
    # Places are counted beyond the last one, up to the end of a tile.
    most = 2**31 - 2**22
    if inner < 64 and n >= 1 << 20 and g.is_contiguous() and y.is_contiguous():
        block = 2048 if y.element_size() <= 2 else 1024
        _line[(triton.cdiv(n, block),)](g, y, n, index, SIZE=size, INNER=inner, LARGE=n >= most, BLOCK=block)
        return out
    g_strides = (*g.stride()[:dim], 0, *g.stride()[dim:])
    # A stride that tells the dimension from the others, with which it cannot merge.
    marks = tuple(int(each == dim) for each in range(y.ndim))
    sizes, g_strides, marks, strides = _merged(y.shape, g_strides, marks, y.stride())
    large = any(sum(map(operator.mul, sizes, steps)) >= most for steps in (g_strides, strides))
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    columns = min(triton.next_power_of_2(n), 1024)
    height = min(triton.next_power_of_2(rows), 2048 // columns)
    blocks = triton.cdiv(n, columns)
    _tile[(triton.cdiv(rows, height) * blocks,)](
        g, y, index, rows, n, blocks, sizes, g_strides, strides, DIMS=len(sizes),
        DIM=marks.index(1) if 1 in marks else -1, LARGE=large, ROWS=height, COLUMNS=columns,
    )  # fmt: skip
    return out
