"""fill_.Scalar and fill_.Tensor: one value to every element, by the strides of the tensor."""

import math
import struct

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


@triton.jit(do_not_specialize=["value"])
def _tile(
    out_ptr, value, rows, n, sizes, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TENSOR: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    if TENSOR:
        value = tl.load(value)
    at = out_ptr + _place(row, column, sizes, out_strides, DIMS)
    tl.store(at, tl.full((ROWS, COLUMNS), value, out_ptr.dtype.element_ty), mask=inside)


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


def _fill(x, value):
    """``value``: a tensor of the same dtype as ``x``, or a number."""
    sizes, strides = _merged(x.shape, x.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 8192 // x.element_size() if x.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    tensor = isinstance(value, torch.Tensor)
    _tile[grid](x, value, rows, n, sizes, strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, TENSOR=tensor)


def fill__Scalar(self, value):
    """``self``, of any dtype."""
    if self.numel() == 0:
        return self
    if self.dtype == torch.complex128:
        for part, number in zip(torch.view_as_real(self).unbind(-1), (value.real, value.imag), strict=True):
            fill__Scalar(part, number)
    else:
        _fill(*_taken(self, value))
    return self


def fill__Tensor(self, value):
    """``self``; ``value`` has no dimensions, any dtype, and is on the same device."""
    if self.numel() == 0:
        return self
    value = value.to(self.dtype).resolve_conj()
    if self.is_complex():
        parts = (torch.view_as_real(each).unbind(-1) for each in (self, value))
        for part, number in zip(*parts, strict=True):
            _fill(part, number)
    elif self.dtype == torch.bool:
        _fill(self.view(torch.uint8), value.view(torch.uint8))
    else:
        _fill(self, value)
    return self
