"""add_.Tensor: self += alpha * other, in tiles of rows; a row is the innermost dimension of what is left after merging.

Sums are formed in float32 (float64 where the promoted dtype is that, int64 for integers, by parts for complex numbers)
and rounded once when stored.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _starts(row, sizes, strides, DIMS: tl.constexpr):
    """Where rows begin, by sizes and strides of the dimensions outside of them."""
    at = tl.zeros_like(row)
    for back in tl.static_range(DIMS):
        at += row % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        row = row // sizes[DIMS - 1 - back]
    return at


@triton.jit(do_not_specialize=["whole"])
def _add(
    a_ptr, b_ptr, rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step,
    factor: tl.float64, whole: tl.int64,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr, BOOL: tl.constexpr,
):  # fmt: skip
    """a += alpha * b, ``tiles`` of COLUMNS for each row. alpha is ``whole`` for integers, else ``factor``."""
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    a_at = a_ptr + _starts(row, sizes, a_strides, DIMS)[:, None] + (column * a_step)[None, :]
    b_at = b_ptr + _starts(row, sizes, b_strides, DIMS)[:, None] + (column * b_step)[None, :]
    alpha = tl.cast(whole, tl.int64) if tl.int64 == WIDE else tl.cast(factor, WIDE)
    total = tl.load(a_at, mask=inside).to(WIDE) + alpha * tl.load(b_at, mask=inside).to(WIDE)
    if BOOL:
        total = (total != 0).to(WIDE)
    tl.store(a_at, total.to(a_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_complex(a_ptr, b_ptr, n, real: tl.float64, imaginary: tl.float64, REAL: tl.constexpr, BLOCK: tl.constexpr):
    """a += alpha * b: pairs without gaps. REAL: alpha's imaginary part is 0, and infinities may not meet it."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    b_real, b_imaginary = tl.load(b_ptr + 2 * i, mask=inside), tl.load(b_ptr + 2 * i + 1, mask=inside)
    scale = tl.cast(real, b_real.dtype)
    more_real, more_imaginary = scale * b_real, scale * b_imaginary
    if not REAL:
        turn = tl.cast(imaginary, b_real.dtype)
        more_real -= turn * b_imaginary
        more_imaginary += turn * b_real
    tl.store(a_ptr + 2 * i, tl.load(a_ptr + 2 * i, mask=inside) + more_real, mask=inside)
    tl.store(a_ptr + 2 * i + 1, tl.load(a_ptr + 2 * i + 1, mask=inside) + more_imaginary, mask=inside)


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


def _complex_sum(self, other, alpha):
    wide = torch.result_type(self, other)
    total = self.to(wide).resolve_conj().clone(memory_format=torch.contiguous_format)
    more = other.to(wide).expand(self.shape).resolve_conj().contiguous()
    alpha, n, block = complex(alpha), total.numel(), 1024 if self.is_cuda else 1 << 16
    _add_complex[(triton.cdiv(n, block),)](
        torch.view_as_real(total), torch.view_as_real(more), n, alpha.real, alpha.imag, REAL=not alpha.imag, BLOCK=block
    )  # fmt: skip
    return self.copy_(total)


def add__Tensor(self, other, *, alpha=1):
    """self, of any strides; ``other`` is broadcast to it."""
    if self.numel() == 0:
        return self
    if self.is_complex():
        return _complex_sum(self, other, alpha)
    dtype = torch.result_type(self, other)
    wide = tl.int64 if not dtype.is_floating_point else tl.float64 if dtype == torch.float64 else tl.float32
    truth = self.dtype == torch.bool
    # Integers wrap, and so does their factor.
    whole = (int(bool(alpha) if truth else alpha) + 2**63) % 2**64 - 2**63 if wide == tl.int64 else 0
    *outer, (columns, a_step, b_step) = _merged(self.shape, self.stride(), other.expand(self.shape).stride())
    sizes, a_strides, b_strides = zip(*outer, strict=True)
    rows = self.numel() // columns
    tile = 1024 if self.is_cuda else 1 << 16
    across = min(triton.next_power_of_2(columns), tile)
    down = min(triton.next_power_of_2(rows), tile // across)
    tiles = triton.cdiv(columns, across)
    _add[(triton.cdiv(rows, down) * tiles,)](
        _bytes_if_bool(self), _bytes_if_bool(other), rows, columns, tiles, sizes, a_strides, b_strides, a_step, b_step,
        0.0 if whole else float(alpha), whole,
        DIMS=len(sizes), ROWS=down, COLUMNS=across, WIDE=wide, BOOL=truth,
    )  # fmt: skip
    return self
