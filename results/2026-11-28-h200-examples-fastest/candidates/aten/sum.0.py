"""sum and sum.dim_IntList: tiles walk along rows or columns of a row-major tensor; float32 inside.

Where there are few results, or very many terms of each, the sums of pieces are stored first and summed in turn.
float64 is added in float64, whole numbers and truth values in int64; complex numbers are summed by their parts.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _sum_rows(
    x_ptr, out_ptr, rows, n, width, row_step, step, piece, pieces,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A row's n elements lie in stretches of ``width`` neighbours, ``step`` apart, rows ``row_step`` apart; of each
    piece, which is ``piece`` stretches, the sum: out (rows, pieces).
    """
    row = (tl.program_id(0) // pieces).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    which = (tl.program_id(0) % pieces).to(tl.int64)
    column = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    total = tl.zeros((ROWS, BLOCK), WIDE)
    # Not tl.cdiv, whose sum may leave 32 bits.
    for stretch in range(which * piece, tl.minimum((which + 1) * piece, (n - 1) // width + 1)):
        inside = (row < rows) & (column < width) & (stretch * width + column < n)
        total += tl.load(x_ptr + row * row_step + (stretch * step + column), mask=inside, other=0).to(WIDE)
    out = tl.sum(total, axis=1)[:, None]
    tl.store(out_ptr + row * pieces + which, out.to(out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def _sum_columns(
    x_ptr, out_ptr, outer, n, inner, piece, blocks, BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Along the middle of x (outer, n, inner), the sum of each piece of n: out (pieces, outer, inner)."""
    column = (tl.program_id(0) % blocks).to(tl.int64) * LANES + tl.arange(0, LANES)[None, :]
    group = (tl.program_id(0) // blocks % outer).to(tl.int64)
    which = (tl.program_id(0) // blocks // outer).to(tl.int64)
    end = tl.minimum((which + 1) * piece, n)
    x_ptr += group * n * inner
    total = tl.zeros((BLOCK, LANES), WIDE)
    for first in range(which * piece, end, BLOCK):
        row = first + tl.arange(0, BLOCK)[:, None]
        total += tl.load(x_ptr + row * inner + column, mask=(row < end) & (column < inner), other=0).to(WIDE)
    out = tl.sum(total, axis=0)[None, :]
    at = (which * outer + group) * inner + column
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=column < inner)


def _wide(dtype):
    """What is added in, for torch and for Triton."""
    if not dtype.is_floating_point:
        return torch.int64, tl.int64
    return (torch.float64, tl.float64) if dtype == torch.float64 else (torch.float32, tl.float32)


def _cut(n, unit, programs):
    """How large pieces of n are, in whole units, and how many: none longer than 1024 units."""
    pieces = max(1, min(1056 // programs, triton.cdiv(n, unit)), triton.cdiv(n, 1024 * unit))
    piece = triton.cdiv(triton.cdiv(n, pieces), unit) * unit
    return piece, triton.cdiv(n, piece)


def _rows(x, out, rows, n, width, row_step, step):
    block = max(16, triton.next_power_of_2(width))
    height = min(_stretch(x) // block, triton.next_power_of_2(max(1, rows // 264)))
    groups = triton.cdiv(rows, height)
    piece, pieces = _cut(triton.cdiv(n, width), 1, groups)
    wide, wide_type = _wide(x.dtype)
    target = out if pieces == 1 else torch.empty((rows, pieces), dtype=wide, device=x.device)
    _sum_rows[(groups * pieces,)](
        x, target, rows, n, width, row_step, step, piece, pieces,
        ROWS=height, BLOCK=block, WIDE=wide_type, num_warps=8 if height * block >= 2048 else 4,
    )  # fmt: skip
    if pieces > 1:
        _whole_rows(target, out, rows, pieces)


def _whole_rows(x, out, rows, n):
    """``x`` is (rows, n)."""
    width = min(n, _stretch(x))
    _rows(x, out, rows, n, width, n, width)


def _stretch(x):
    """Neighbours that a program reads at once, at most."""
    return 4096 if x.element_size() <= 2 else 2048


def _columns(x, out, outer, n, inner):
    lanes = min(128, triton.next_power_of_2(inner))
    block = min(4096 // lanes, triton.next_power_of_2(n))
    blocks = triton.cdiv(inner, lanes)
    piece, pieces = _cut(n, block, outer * blocks)
    wide, wide_type = _wide(x.dtype)
    target = out if pieces == 1 else torch.empty((pieces, outer, inner), dtype=wide, device=x.device)
    _sum_columns[(outer * blocks * pieces,)](
        x, target, outer, n, inner, piece, blocks, BLOCK=block, LANES=lanes, WIDE=wide_type
    )  # fmt: skip
    if pieces > 1:
        _columns(target, out, 1, pieces, outer * inner)


def _reduced(x, dims, keepdim, dtype):
    """``x`` summed along ``dims``, which are in order and not negative."""
    kept = [each for each in range(x.ndim) if each not in dims]
    shape = [1 if at in dims else size for at, size in enumerate(x.shape)] if keepdim else [x.shape[at] for at in kept]
    if x.numel() == 0:
        return torch.zeros(shape, dtype=dtype, device=x.device)
    out = torch.empty(shape, dtype=dtype, device=x.device)
    x = x.contiguous()
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    # Neighbouring dimensions that are kept, k, or reduced, r, count as one.
    pattern, sizes = "", []
    for at, size in enumerate(x.shape):
        if size != 1:
            letter = "r" if at in dims else "k"
            if not pattern.endswith(letter):
                pattern, sizes = pattern + letter, [*sizes, 1]
            sizes[-1] *= size
    if pattern in ("k", "rk", "krk"):
        _columns(x, out, *(1,) * (3 - len(sizes)), *sizes)
    elif pattern == "rkr" and 128 <= sizes[-1] <= _stretch(x):
        stretches, rows, width = sizes
        _rows(x, out, rows, stretches * width, width, width, rows * width)
    else:
        rows = math.prod(x.shape[at] for at in kept)
        _whole_rows(x.permute((*kept, *dims)).contiguous(), out, rows, x.numel() // rows)
    return out


def sum(self, *, dtype=None):
    """All elements, as a tensor without dimensions."""
    return sum_dim_IntList(self, None, dtype=dtype)


def sum_dim_IntList(self, dim, keepdim=False, *, dtype=None):
    """Along the dimensions ``dim``, all where there are none; contiguous."""
    whole = not (self.is_floating_point() or self.is_complex())
    dtype = dtype or (torch.int64 if whole else self.dtype)
    # 16-bit floats are widened as they are read; another dtype that is asked for must be taken on first.
    x = self if dtype == self.dtype or (whole and dtype == torch.int64) else self.to(dtype)
    dims = sorted(each % max(x.ndim, 1) for each in dim) if dim and x.ndim else range(x.ndim)
    if not dtype.is_complex:
        return _reduced(x, dims, keepdim, dtype)
    parts = torch.view_as_real(x.resolve_conj())
    return torch.view_as_complex(_reduced(parts, dims, keepdim, parts.dtype))
