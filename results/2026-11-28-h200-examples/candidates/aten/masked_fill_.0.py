"""masked_fill_.Scalar and masked_fill_.Tensor: the value where the mask is true, all else written back as it was.

Strides of tensor and mask are taken as they are, 0 where the mask is broadcast.
"""

import math
import struct

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


@triton.jit(do_not_specialize=["value"])
def _tile(
    mask_ptr, x_ptr, value, rows, n, sizes, mask_strides, x_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TENSOR: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    at = x_ptr + _place(row, column, sizes, x_strides, DIMS)
    mask = tl.load(mask_ptr + _place(row, column, sizes, mask_strides, DIMS), mask=inside, other=0)
    x = tl.load(at, mask=inside, other=0)
    if TENSOR:
        value = tl.load(value)
    tl.store(at, tl.where(mask != 0, tl.cast(value, x.dtype), x), mask=inside)


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


def _taken(x, value):
    """``x`` and a number as a kernel takes them: a float64 goes as an integer of its bits, else it became a float32."""
    if x.dtype == torch.float64:
        return x.view(torch.int64), struct.unpack("<q", struct.pack("<d", value))[0]
    if x.dtype == torch.complex64:
        value = complex(value)
        return x.view(torch.int64), struct.unpack("<q", struct.pack("<2f", value.real, value.imag))[0]
    if x.dtype == torch.bool:
        return x.view(torch.uint8), int(value != 0)
    if x.is_floating_point():
        return x, float(value)
    bits = 8 * x.element_size()
    low = -(1 << bits - 1) if x.dtype.is_signed else 0
    return x, (int(value) - low) % (1 << bits) + low


def _fill(x, mask, value):
    """``value``: a tensor of the same dtype as ``x``, or a number."""
    sizes, *strides = _merged(x.shape, mask.stride(), x.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = (1024 if x.element_size() >= 4 else 2048) if x.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        mask, x, value, rows, n, sizes, *strides,
        DIMS=len(sizes), ROWS=height, COLUMNS=columns, TENSOR=isinstance(value, torch.Tensor),
    )  # fmt: skip


def masked_fill__Scalar(self, mask, value):
    """``self``; ``mask`` is broadcast to its shape."""
    if self.numel():
        x, value = _taken(self, value)
        _fill(x, mask.view(torch.int8).expand(self.shape), value)
    return self


def masked_fill__Tensor(self, mask, value):
    """``self``; ``value`` has no dimensions and is on the same device."""
    if self.numel():
        plain = _SAME_SIZE[self.element_size()]
        value = value.to(self.dtype).resolve_conj()
        _fill(self.view(plain), mask.view(torch.int8).expand(self.shape), value.view(plain))
    return self
