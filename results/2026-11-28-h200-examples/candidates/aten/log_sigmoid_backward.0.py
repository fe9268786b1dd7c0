"""log_sigmoid_backward: the gradient over 1 + exp(x); the buffer of the forward pass is not needed.

Strides of all tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _grad(g, x):
    """By exp(-abs(x)), which cannot overflow, as a square: its root keeps a product whose second factor underflows."""
    root = tl.exp(tl.abs(x) * -0.5)
    part = tl.where(x > 0.0, (g * root) * root, g)
    if x.dtype == tl.float64:
        return part / (1.0 + root * root)
    else:
        return tl.div_rn(part, 1.0 + root * root)


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
    g_ptr, x_ptr, out_ptr, rows, n, sizes, g_strides, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    g = tl.load(g_ptr + _place(row, column, sizes, g_strides, DIMS), mask=inside, other=0).to(WIDE)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    y = _grad(g, x)
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


def _filled(out, g, x):
    if out.numel() == 0:
        return out
    sizes, *strides = _merged(out.shape, g.stride(), x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        g, x, out, rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, WIDE=tl.float64 if out.dtype == torch.float64 else tl.float32,
    )  # fmt: skip
    return out


def log_sigmoid_backward(grad_output, self, buffer):
    """A new tensor of the input's shape and dtype."""
    return _filled(torch.empty_like(grad_output), grad_output, self)


def log_sigmoid_backward_grad_input(grad_output, self, buffer, *, grad_input):
    """The same into ``grad_input``, of any strides, which is returned."""
    return _filled(grad_input, grad_output, self)
