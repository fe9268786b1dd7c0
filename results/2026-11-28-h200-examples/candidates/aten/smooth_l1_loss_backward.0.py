"""smooth_l1_loss_backward: the gradient times (self - target) / beta, held between -1 and 1, over n for the mean.

Strides of all tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl

MEAN = 1


@triton.jit
def _slope(distance, beta):
    # Comparisons that are false for NaN leave it as it is.
    y = distance / beta
    y = tl.where(distance >= beta, 1.0, y)
    return tl.where(distance <= -beta, -1.0, y)


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
    g_ptr, x_ptr, target_ptr, out_ptr, beta, scale, rows, n, sizes, g_strides, x_strides, target_strides,
    out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SHARED: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    # Where one number of g serves a whole row, it is loaded once.
    g_column = tl.zeros((1, 1), tl.int64) if SHARED else column
    g = tl.load(g_ptr + _place(row, g_column, sizes, g_strides, DIMS), mask=row < rows if SHARED else inside).to(WIDE)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    target = tl.load(target_ptr + _place(row, column, sizes, target_strides, DIMS), mask=inside, other=0).to(WIDE)
    if tl.float64 == WIDE:
        beta, scale = tl.load(beta), tl.load(scale)
    y = g * scale * _slope(x - target, beta)
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


def _filled(out, g, x, target, reduction, beta):
    if out.numel() == 0:
        return out
    scale = 1.0 / out.numel() if reduction == MEAN else 1.0
    beta, double = float(beta), out.dtype == torch.float64
    if double:
        # As numbers a kernel would take them in float32.
        beta, scale = (torch.full((), each, dtype=torch.float64, device=x.device) for each in (beta, scale))
    g, wide = g.expand(out.shape), tl.float64 if double else tl.float32
    sizes, *strides = _merged(out.shape, g.stride(), x.stride(), target.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        g, x, target, out, beta, scale, rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, SHARED=strides[0][-1] == 0, WIDE=wide,
    )  # fmt: skip
    return out


def smooth_l1_loss_backward(grad_output, self, target, reduction, beta):
    """A new tensor of the input's shape and dtype; ``grad_output`` may be one number."""
    return _filled(torch.empty_like(self), grad_output, self, target, reduction, beta)


def smooth_l1_loss_backward_grad_input(grad_output, self, target, reduction, beta, *, grad_input):
    """The same into ``grad_input``, of any strides, which is returned."""
    return _filled(grad_input, grad_output, self, target, reduction, beta)
