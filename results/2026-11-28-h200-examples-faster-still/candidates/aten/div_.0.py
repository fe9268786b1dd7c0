"""div_: self /= other, also rounded; in tiles of rows, the innermost dimension that is left after merging.

Quotients are formed in float32 (float64 for float64 and complex numbers, integers where they are rounded) and rounded
once when stored.
"""

import torch
import triton
import triton.language as tl

_COMMON = {
    torch.bool: tl.uint8, torch.uint8: tl.uint8, torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32,
    torch.int64: tl.int64, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
    torch.float64: tl.float64,
}  # fmt: skip
PLAIN, TRUNC, FLOOR = 0, 1, 2
_MODES = {None: PLAIN, "trunc": TRUNC, "floor": FLOOR}


@triton.jit
def _quotient(a, b, MODE: tl.constexpr, WIDE: tl.constexpr):
    """MODE 0: as it is, 1: rounded towards zero, 2: rounded down."""
    if WIDE.is_int():
        q = a // b
        rest = a - q * b
        # Right whichever way // rounds.
        if MODE == 1:
            q = tl.where((rest != 0) & ((rest < 0) != (a < 0)), q + 1, q)
        else:
            q = tl.where((rest != 0) & ((rest < 0) != (b < 0)), q - 1, q)
    elif MODE == 0:
        q = a / b
    else:
        exact = tl.div_rn(a, b) if tl.float32 == WIDE else a / b
        q = tl.floor(exact)
        if MODE == 1:
            q = tl.where(exact < 0.0, tl.ceil(exact), q)
        else:
            # Also where the quotient underflows.
            q = tl.where((tl.abs(a) < tl.abs(b)) & (a != 0.0) & ((a < 0.0) != (b < 0.0)), -1.0, q)
            q = tl.where((tl.abs(a) == float("inf")) & (b != 0.0), float("nan"), q)
    return q


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
    """In the arithmetic's type, rounded to the operands' common one before."""
    return x.to(tl.float32).to(COMMON).to(WIDE) if tl.float32 == WIDE else x.to(COMMON).to(WIDE)


@triton.jit(do_not_specialize=["whole"])
def _div(
    a_ptr, b_ptr, rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step,
    number: tl.float64, whole: tl.int64,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMMON: tl.constexpr, WIDE: tl.constexpr,
    MODE: tl.constexpr, NUMBER: tl.constexpr,
):  # fmt: skip
    """a /= b, ``tiles`` of COLUMNS for each row. NUMBER: the divisor is one, ``whole`` for integers."""
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    a_at = a_ptr + _starts(row, sizes, a_strides, DIMS)[:, None] + (column * a_step)[None, :]
    a = _promoted(tl.load(a_at, mask=inside, other=0), COMMON, WIDE)
    if NUMBER:
        b = tl.broadcast_to(tl.cast(tl.cast(whole, COMMON) if WIDE.is_int() else number, WIDE), (ROWS, COLUMNS))
    else:
        b_at = _starts(row, sizes, b_strides, DIMS)[:, None] + (column * b_step)[None, :]
        b = _promoted(tl.load(b_ptr + b_at, mask=inside, other=1), COMMON, WIDE)
    tl.store(a_at, _quotient(a, b, MODE, WIDE).to(a_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _div_complex(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Smith's method on pairs without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(a_ptr + 2 * i, mask=inside, other=0.0).to(tl.float64)
    b = tl.load(a_ptr + 2 * i + 1, mask=inside, other=0.0).to(tl.float64)
    c = tl.load(b_ptr + 2 * i, mask=inside, other=1.0).to(tl.float64)
    d = tl.load(b_ptr + 2 * i + 1, mask=inside, other=0.0).to(tl.float64)
    first, zero = tl.abs(c) >= tl.abs(d), (c == 0.0) & (d == 0.0)
    larger, smaller = tl.where(first, c, d), tl.where(first, d, c)
    ratio = smaller / tl.where(zero, 1.0, larger)
    size = tl.where(zero, 1.0, larger) + smaller * ratio
    real = tl.where(first, a + b * ratio, a * ratio + b) / size
    imaginary = tl.where(first, b - a * ratio, b * ratio - a) / size
    real = tl.where(zero, a / tl.abs(c), real)
    imaginary = tl.where(zero, b / tl.abs(d), imaginary)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)


def _complex_quotient(a, b):
    """``b`` may be a number."""
    # torch.full refuses what complex64 does not hold; rounded below it is infinite.
    b = b if isinstance(b, torch.Tensor) else torch.full((), b, dtype=torch.complex128, device=a.device)
    pairs = [torch.view_as_real(each.to(a.dtype).expand(a.shape).resolve_conj().contiguous()) for each in (a, b)]
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n, block = out.numel(), 256 if a.is_cuda else 1 << 16
    _div_complex[(triton.cdiv(n, block),)](*pairs, torch.view_as_real(out), n, BLOCK=block)
    return a.copy_(out)


def _merged(shape, *strides):
    """(size, stride of each) by dimension, two at least; neighbours are one where every operand allows it."""
    dims = [each for each in zip(shape, *strides, strict=True) if each[0] > 1]
    merged = []
    for size, *steps in sorted(dims, key=lambda each: each[1], reverse=True):
        if merged and all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (size * merged[-1][0], *steps)
        else:
            merged.append((size, *steps))
    return [(1,) * (1 + len(strides))] * (2 - len(merged)) + merged


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _div_by(self, other, mode):
    """self, of any strides; ``other`` is a number, or a tensor that is broadcast to it."""
    if self.numel() == 0:
        return self
    if self.is_complex():
        return _complex_quotient(self, other)
    dtype, number = torch.result_type(self, other), not isinstance(other, torch.Tensor)
    narrow = tl.float32 if dtype.is_floating_point else tl.int32
    a = _bytes_if_bool(self)
    b = a if number else _bytes_if_bool(other).expand(self.shape)
    *outer, (columns, a_step, b_step) = _merged(a.shape, a.stride(), b.stride())
    sizes, a_strides, b_strides = zip(*outer, strict=True)
    rows = a.numel() // columns
    tile = 1024 if a.is_cuda else 1 << 16
    across = min(triton.next_power_of_2(columns), tile)
    down = min(triton.next_power_of_2(rows), tile // across)
    tiles = triton.cdiv(columns, across)
    divisor = (0.0, 0)
    if number:
        divisor = (float(other), 0) if dtype.is_floating_point else (0.0, int(other))
    _div[(triton.cdiv(rows, down) * tiles,)](
        a, b, rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step, *divisor,
        DIMS=len(sizes), ROWS=down, COLUMNS=across, COMMON=_COMMON[dtype],
        WIDE=_COMMON[dtype] if dtype.itemsize == 8 else narrow, MODE=mode, NUMBER=number,
    )  # fmt: skip
    return self


def div__Tensor(self, other):
    return _div_by(self, other, PLAIN)


def div__Scalar(self, other):
    return _div_by(self, other, PLAIN)


def div__Tensor_mode(self, other, *, rounding_mode=None):
    return _div_by(self, other, _MODES[rounding_mode])
