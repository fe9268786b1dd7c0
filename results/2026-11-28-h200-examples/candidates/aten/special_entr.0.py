"""special_entr: -x * log(x), 0 at 0, -inf below; float32 inside, float64 for float64.

Strides of both tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _entr(x, SIXTEEN: tl.constexpr):
    below = tl.where(x < 0, float("-inf"), 0.0)
    if SIXTEEN:
        # Results of subnormal numbers are zeros in 16 bits.
        y = x * (tl.log2(x) * -0.6931471805599453)
        return tl.where(x < 1.1754943508222875e-38, below, y)
    if x.dtype == tl.float64:
        y = -(x * tl.log(x))
    else:
        # Subnormal numbers are scaled by 2**24: the hardware's logarithm takes them for zeros.
        small = x < 1.1754943508222875e-38
        log = tl.log(tl.where(small, x * 16777216.0, x))
        y = -(x * tl.where(small, log - 16.635532333438686, log))
    return tl.where(x <= 0, below, y)


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
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, SIXTEEN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0)
    y = _entr(x.to(WIDE), SIXTEEN).to(out_ptr.dtype.element_ty)
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
    wide = tl.float64 if out.dtype == torch.float64 else tl.float32
    meta = {"SIXTEEN": x.dtype in (torch.float16, torch.bfloat16), "WIDE": wide}
    sizes, *strides = _merged(out.shape, x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, out, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, **meta)
    return out


def special_entr(self):
    """A new tensor of the input's shape in its floating dtype, or in float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self)


def special_entr_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self)
