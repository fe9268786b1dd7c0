"""rrelu_with_noise_backward: the gradient times the noise, or, when not training, times the mean slope where x <= 0.

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
    g_ptr, x_ptr, out_ptr, slope, rows, n, sizes, g_strides, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TRAINING: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    g = tl.load(g_ptr + _place(row, column, sizes, g_strides, DIMS), mask=inside, other=0).to(WIDE)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    if tl.float64 == WIDE:
        slope = tl.load(slope)
    y = g * x if TRAINING else tl.where(x > 0, g, g * slope)
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


def _filled(out, g, x, slope, training):
    if out.numel() == 0:
        return out
    double = out.dtype == torch.float64
    if double:
        # As a number a kernel would take it in float32.
        slope = torch.full((), slope, dtype=torch.float64, device=x.device)
    meta = {"TRAINING": training, "WIDE": tl.float64 if double else tl.float32}
    sizes, *strides = _merged(out.shape, g.stride(), x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](g, x, out, slope, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, **meta)
    return out


def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    """A new tensor of the gradient's shape and dtype; ``self_is_result`` concerns only in-place calls."""
    out = torch.empty_like(grad_output)
    return _filled(out, grad_output, noise if training else self, (lower + upper) / 2, training)


def rrelu_with_noise_backward_out(grad_output, self, noise, lower, upper, training, self_is_result, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, grad_output, noise if training else self, (lower + upper) / 2, training)
