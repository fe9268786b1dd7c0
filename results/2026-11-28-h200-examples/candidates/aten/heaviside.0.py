"""heaviside: 0 below 0, 1 above, the element of ``values`` at 0, and 0 for NaN.

Strides of all tensors are taken as they are, with dimensions merged where that leaves them so.
"""

import math

import torch
import triton
import triton.language as tl

_TYPES = {
    torch.float64: (tl.float64, tl.float64),
    torch.float32: (tl.float32, tl.float32),
    torch.float16: (tl.float16, tl.float32),
    torch.bfloat16: (tl.bfloat16, tl.float32),
    torch.int64: (tl.int64, tl.int64),
    torch.int32: (tl.int32, tl.int32),
    torch.int16: (tl.int16, tl.int32),
    torch.int8: (tl.int8, tl.int32),
    torch.uint8: (tl.uint8, tl.int32),
    torch.bool: (tl.uint8, tl.int32),
}
"""The operands' common dtype, and that in which it is computed with."""


@triton.jit
def _converted(x, COMMON: tl.constexpr, WIDE: tl.constexpr):
    if x.dtype == COMMON:
        return x.to(WIDE)
    if tl.float32 == WIDE:
        # By way of float32, from which every dtype can be reached.
        x = x.to(tl.float32)
    return x.to(COMMON).to(WIDE)


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
    a_ptr, b_ptr, out_ptr, rows, n, sizes, a_strides, b_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMMON: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    a = tl.load(a_ptr + _place(row, column, sizes, a_strides, DIMS), mask=inside, other=0)
    b = tl.load(b_ptr + _place(row, column, sizes, b_strides, DIMS), mask=inside, other=0)
    a, b = _converted(a, COMMON, WIDE), _converted(b, COMMON, WIDE)
    y = tl.where(a == 0, b, (a > 0).to(WIDE))
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


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _filled(out, a, b, dtype):
    if out.numel() == 0:
        return out
    common, wide = _TYPES[dtype]
    a, b = (_bytes_if_bool(each.expand(out.shape)) for each in (a, b))
    sizes, *strides = _merged(out.shape, a.stride(), b.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        a, b, _bytes_if_bool(out), rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, COMMON=common, WIDE=wide,
    )  # fmt: skip
    return out


def heaviside(self, values):
    """With broadcasting, in the dtype that both have."""
    dtype = torch.result_type(self, values)
    out = torch.empty(torch.broadcast_shapes(self.shape, values.shape), dtype=dtype, device=self.device)
    return _filled(out, self, values, dtype)


def heaviside_out(self, values, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self, values, torch.result_type(self, values))
