"""eq: self == other with broadcasting and type promotion, in tiles of rows; a row is the innermost dimension that is
left after merging.

Both operands are converted to their common dtype, in which integers may wrap, and compared in a wider one.
"""

import torch
import triton
import triton.language as tl

_COMMON = {
    torch.bool: tl.uint8, torch.uint8: tl.uint8, torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32,
    torch.int64: tl.int64, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
    torch.float64: tl.float64,
}  # fmt: skip


@triton.jit
def _starts(row, sizes, strides, DIMS: tl.constexpr):
    """Where rows begin, by sizes and strides of the dimensions outside of them."""
    at = tl.zeros_like(row)
    for back in tl.static_range(DIMS):
        at += row % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        row = row // sizes[DIMS - 1 - back]
    return at


@triton.jit
def _promoted(x, COMMON: tl.constexpr, WIDE: tl.constexpr):
    return x.to(tl.float32).to(COMMON).to(WIDE) if tl.float32 == WIDE else x.to(COMMON).to(WIDE)


@triton.jit(do_not_specialize=["whole"])
def _equal(
    a_ptr, b_ptr, out_ptr, rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step,
    number: tl.float64, whole: tl.int64,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMMON: tl.constexpr, WIDE: tl.constexpr,
    NUMBER: tl.constexpr,
):  # fmt: skip
    """``tiles`` of COLUMNS for each row; out is row-major. NUMBER: other is one, ``whole`` for integers."""
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    a_at = _starts(row, sizes, a_strides, DIMS)[:, None] + (column * a_step)[None, :]
    a = _promoted(tl.load(a_ptr + a_at, mask=inside, other=0), COMMON, WIDE)
    if NUMBER:
        b = _promoted(tl.cast(whole, tl.int64) if WIDE.is_int() else tl.cast(number, tl.float64), COMMON, WIDE)
    else:
        b_at = _starts(row, sizes, b_strides, DIMS)[:, None] + (column * b_step)[None, :]
        b = _promoted(tl.load(b_ptr + b_at, mask=inside, other=0), COMMON, WIDE)
    tl.store(out_ptr + row[:, None] * columns + column[None, :], (a == b).to(tl.uint8), mask=inside)


@triton.jit
def _equal_complex(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    real = tl.load(a_ptr + 2 * i, mask=inside) == tl.load(b_ptr + 2 * i, mask=inside)
    imaginary = tl.load(a_ptr + 2 * i + 1, mask=inside) == tl.load(b_ptr + 2 * i + 1, mask=inside)
    tl.store(out_ptr + i, (real & imaginary).to(tl.uint8), mask=inside)


def _complex_equal(a, b, dtype, out):
    """``b`` may be a number."""
    # torch.full refuses what complex64 does not hold; rounded below it is infinite.
    b = b if isinstance(b, torch.Tensor) else torch.full((), b, dtype=torch.complex128, device=out.device)
    pairs = [torch.view_as_real(each.to(dtype).expand(out.shape).resolve_conj().contiguous()) for each in (a, b)]
    n, block = out.numel(), 1024 if out.is_cuda else 1 << 16
    _equal_complex[(triton.cdiv(n, block),)](*pairs, out.view(torch.uint8), n, BLOCK=block)
    return out


def _merged(shape, *strides):
    """(size, stride of each) by dimension, two at least; neighbours are one where every operand allows it."""
    merged = []
    for size, *steps in [each for each in zip(shape, *strides, strict=True) if each[0] > 1]:
        if merged and all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (size * merged[-1][0], *steps)
        else:
            merged.append((size, *steps))
    return [(1,) * (1 + len(strides))] * (2 - len(merged)) + merged


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _compared(self, other):
    """A new row-major tensor of bool; ``other`` is a tensor or a number."""
    dtype, number = torch.result_type(self, other), not isinstance(other, torch.Tensor)
    shape = self.shape if number else torch.broadcast_shapes(self.shape, other.shape)
    out = torch.empty(shape, dtype=torch.bool, device=self.device)
    if out.numel() == 0:
        return out
    if dtype.is_complex:
        return _complex_equal(self, other, dtype, out)
    a = _bytes_if_bool(self).expand(shape)
    b = a if number else _bytes_if_bool(other).expand(shape)
    *outer, (columns, a_step, b_step) = _merged(shape, a.stride(), b.stride())
    sizes, a_strides, b_strides = zip(*outer, strict=True)
    rows = out.numel() // columns
    tile = 1024 if out.is_cuda else 1 << 16
    across = min(triton.next_power_of_2(columns), tile)
    down = min(triton.next_power_of_2(rows), tile // across)
    tiles = triton.cdiv(columns, across)
    wide = tl.int64 if not dtype.is_floating_point else tl.float64 if dtype == torch.float64 else tl.float32
    value = (0.0, 0)
    if number:
        value = (float(other), 0) if dtype.is_floating_point else (0.0, int(other))
    _equal[(triton.cdiv(rows, down) * tiles,)](
        a, b, out.view(torch.uint8), rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step, *value,
        DIMS=len(sizes), ROWS=down, COLUMNS=across, COMMON=_COMMON[dtype], WIDE=wide, NUMBER=number,
    )  # fmt: skip
    return out


def eq_Tensor(self, other):
    return _compared(self, other)


def eq_Scalar(self, other):
    return _compared(self, other)
