"""mish: x * tanh(log(1 + exp(x))), by one exponential; float32 inside, float64 for float64.

Strides of both tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _mish(x):
    """tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2) for e = exp(x), and 1 where x is above 20."""
    held = tl.where(x > 20.0, 20.0, x)
    root = tl.exp(0.5 * held)
    e = tl.exp(held) if x.dtype == tl.float64 else root * root
    part = e * (e + 2.0)
    # Far below 0 it is x * e, whose factors must not become subnormal before the product does.
    return tl.where(x < -40.0, (x * root) * root, x * (part / (part + 2.0)))


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
    y = _mish(x.to(WIDE)).to(out_ptr.dtype.element_ty)
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
    if x.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        x = x.view(torch.uint8)
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


def mish(self):
    """A new tensor of the input's shape in its floating dtype, or in float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self)


def mish_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self)
