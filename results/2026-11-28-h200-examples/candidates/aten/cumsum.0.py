"""cumsum: a scan tile by tile along the dimension; long ones in pieces, whose sums are scanned first.

Sums are float32 inside (float64 for float64, int64 for integers) and rounded once when stored; complex numbers are
summed by their parts.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _totals(
    x_ptr, out_ptr, lines, n, inner, pieces, piece, BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """What each piece of x (outer, n, inner) sums up to: out (outer, pieces, inner). A line is one of outer * inner."""
    line = (tl.program_id(0) // pieces).to(tl.int64) * LANES + tl.arange(0, LANES)[:, None]
    which = (tl.program_id(0) % pieces).to(tl.int64)
    outer, lane = line // inner, line % inner
    step = tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((LANES, BLOCK), WIDE)
    for first in range(0, piece, BLOCK):
        at = which * piece + first + step
        total += tl.load(x_ptr + (outer * n + at) * inner + lane, mask=(at < n) & (line < lines), other=0).to(WIDE)
    tl.store(out_ptr + (outer * pieces + which) * inner + lane, tl.sum(total, axis=1)[:, None], mask=line < lines)


@triton.jit
def _scan(
    x_ptr, carry_ptr, out_ptr, lines, n, inner, pieces, piece,
    BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Scans each piece, from what the pieces up to the one before sum up to: carry (outer, pieces, inner)."""
    line = (tl.program_id(0) // pieces).to(tl.int64) * LANES + tl.arange(0, LANES)[:, None]
    which = (tl.program_id(0) % pieces).to(tl.int64)
    outer, lane = line // inner, line % inner
    step = tl.arange(0, BLOCK)[None, :]
    carry = tl.zeros((LANES, 1), WIDE)
    if which > 0:
        carry += tl.load(carry_ptr + (outer * pieces + which - 1) * inner + lane, mask=line < lines, other=0)
    for first in range(0, piece, BLOCK):
        at = which * piece + first + step
        inside = (at < n) & (line < lines)
        x = tl.load(x_ptr + (outer * n + at) * inner + lane, mask=inside, other=0).to(WIDE)
        y = tl.cumsum(x, axis=1) + carry
        tl.store(out_ptr + (outer * n + at) * inner + lane, y.to(out_ptr.dtype.element_ty), mask=inside)
        carry += tl.sum(x, axis=1)[:, None]


def _wide(dtype):
    if not dtype.is_floating_point:
        return torch.int64, tl.int64
    return (torch.float64, tl.float64) if dtype == torch.float64 else (torch.float32, tl.float32)


def _scanned(x, out, outer, n, inner):
    """Scan row-major x, seen as (outer, n, inner), along its middle into ``out``."""
    wide, wide_type = _wide(out.dtype)
    tile = 4096 if x.is_cuda else 1 << 14
    lines = outer * inner
    # Neighbours in memory side by side: those of one line where it lies in one piece, else those of several.
    block = max(
        1, min(triton.next_power_of_2(n), tile if inner == 1 else tile // min(triton.next_power_of_2(inner), 64))
    )
    lanes = max(1, min(triton.next_power_of_2(lines), tile // block))
    groups = triton.cdiv(lines, lanes)
    # Where there are few lines, pieces of each keep the device busy.
    wanted = max(1, 1024 // groups) if x.is_cuda else 2
    piece = block * triton.cdiv(triton.cdiv(n, wanted), block)
    pieces = triton.cdiv(n, piece)
    meta = {"BLOCK": block, "LANES": lanes, "WIDE": wide_type, "num_warps": 8 if lanes * block >= 2048 else 4}
    carry = torch.empty((outer, pieces, inner), dtype=wide, device=x.device)
    if pieces > 1:
        sums = torch.empty_like(carry)
        _totals[(groups * pieces,)](x, sums, lines, n, inner, pieces, piece, **meta)
        whole = block * triton.cdiv(pieces, block)
        _scan[(groups,)](sums, sums, carry, lines, pieces, inner, 1, whole, **meta)
    _scan[(groups * pieces,)](x, carry, out, lines, n, inner, pieces, piece, **meta)


def cumsum(self, dim, *, dtype=None):
    """Sums of the first elements along ``dim``; row-major, in ``dtype``, or that of self, or int64 for integers."""
    whole = not (self.is_floating_point() or self.is_complex())
    dtype = dtype or (torch.int64 if whole else self.dtype)
    # What is asked for in another dtype is converted before it is added.
    x = self if dtype == self.dtype or (whole and dtype == torch.int64) else self.to(dtype)
    out = torch.empty(self.shape, dtype=dtype, device=self.device)
    if out.numel() == 0:
        return out
    n = out.shape[dim] if out.ndim else 1
    inner = out.shape[dim:].numel() // n if out.ndim else 1
    outer = out.numel() // (n * inner)
    x = x.contiguous()
    if dtype.is_complex:
        _scanned(torch.view_as_real(x), torch.view_as_real(out), outer, n, 2 * inner)
    else:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        _scanned(x.view(torch.uint8) if x.dtype == torch.bool else x, out, outer, n, inner)
    return out
