"""cumsum: a scan tile by tile along the dimension; long ones in pieces, whose sums are scanned first.

Few long rows are read once, in float32: every program tells the others its sum and adds up those before it.
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
    end = tl.where(line < lines, n, 0)
    carry = tl.zeros((LANES, 1), WIDE)
    if which > 0:
        carry += tl.load(carry_ptr + (outer * pieces + which - 1) * inner + lane, mask=line < lines, other=0)
    for first in range(0, piece, BLOCK):
        at = which * piece + first + step
        x = tl.load(x_ptr + (outer * n + at) * inner + lane, mask=at < end, other=0).to(WIDE)
        y = tl.cumsum(x, axis=1) + carry
        tl.store(out_ptr + (outer * n + at) * inner + lane, y.to(out_ptr.dtype.element_ty), mask=at < end)
        carry += tl.sum(x, axis=1)[:, None]


@triton.jit
def _scan_long(x_ptr, word_ptr, out_ptr, n, blocks, BLOCK: tl.constexpr, WORDS: tl.constexpr):
    """A block of a row. Its sum is told in the upper half of a word, whose lowest bit says that it is there.

    Programs start in the order of their numbers, so those that one waits for run or are done.
    """
    row, which = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    at = which.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0).to(tl.float32)
    word_ptr += row * blocks
    tl.atomic_xchg(word_ptr + which, (tl.sum(x, axis=0).to(tl.int32, bitcast=True).to(tl.int64) << 32) | 1)
    before = tl.zeros((WORDS,), tl.float32)
    for first in range(0, which, WORDS):
        i = first + tl.arange(0, WORDS)
        word = tl.load(word_ptr + i, mask=i < which, other=1, volatile=True)
        while tl.min(word & 1, axis=0) == 0:
            word = tl.load(word_ptr + i, mask=i < which, other=1, volatile=True)
        before += (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    y = tl.sum(before, axis=0) + tl.cumsum(x, axis=0)
    tl.store(out_ptr + row * n + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


def _wide(dtype):
    if not dtype.is_floating_point:
        return torch.int64, tl.int64
    return (torch.float64, tl.float64) if dtype == torch.float64 else (torch.float32, tl.float32)


def _tile(lines, n, inner, wide):
    """BLOCK elements of each of LANES lines, neighbours in memory side by side; how often a line may be cut."""
    most = 4096 if inner > 1 else 16384 // wide.itemsize // 2
    lanes = min(triton.next_power_of_2(inner), 32)
    block = max(16, min(triton.next_power_of_2(n), most // lanes))
    lanes = max(1, min(triton.next_power_of_2(lines), most // block))
    # Where there are few lines, pieces of each keep the device busy.
    return block, lanes, max(1, 512 // triton.cdiv(lines, lanes))


def _scanned(x, out, outer, n, inner):
    """Scan row-major x, seen as (outer, n, inner), along its middle into ``out``."""
    wide, wide_type = _wide(out.dtype)
    if inner == 1 and outer < 264 and n >= 32768 and wide == torch.float32:
        blocks = triton.cdiv(n, 8192)
        words = torch.zeros(outer * blocks, dtype=torch.int64, device=x.device)
        _scan_long[(outer * blocks,)](x, words, out, n, blocks, BLOCK=8192, WORDS=1024, num_warps=8)
        return
    lines = outer * inner
    block, lanes, cuts = _tile(lines, n, inner, wide)
    groups = triton.cdiv(lines, lanes)
    piece = block * triton.cdiv(triton.cdiv(n, cuts), block)
    pieces = triton.cdiv(n, piece)
    meta = {"BLOCK": block, "LANES": lanes, "WIDE": wide_type, "num_warps": 4}
    carry = out
    if pieces > 1:
        sums = torch.empty((outer, pieces, inner), dtype=wide, device=x.device)
        carry = torch.empty_like(sums)
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
    x = x.resolve_conj().contiguous()
    if dtype.is_complex:
        _scanned(torch.view_as_real(x), torch.view_as_real(out), outer, n, 2 * inner)
    else:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        _scanned(x.view(torch.uint8) if x.dtype == torch.bool else x, out, outer, n, inner)
    return out
