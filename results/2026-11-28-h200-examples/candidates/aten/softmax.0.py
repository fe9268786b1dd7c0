"""softmax.int: one tile per program, the maximum and the sum in one pass, the result in a second.

A few rows that are very long are cut into parts: one kernel finds the maximum and sum of each, another the result.

Numbers are float32 inside (float64 for float64), rounded once when stored.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _exp(x):
    """exp(x) for x <= 0 to the last bits: the hardware's exp loses ten of them when x is large."""
    if x.dtype == tl.float64:
        return tl.exp(x)
    n = tl.maximum(tl.floor(x * 1.4426950408889634 + 0.5), -160.0)
    rest = (x - n * 0.693359375) + n * 2.12194440e-4
    return tl.exp(rest) * tl.exp2(tl.maximum(n, -100.0)) * tl.exp2(tl.minimum(n + 100.0, 0.0))


@triton.jit
def _softmax_rows(x_ptr, out_ptr, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Rows of n neighbours; a tile of ROWS rows holds each of them whole, so memory is read once."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * n + column, mask=inside, other=float("-inf")).to(WIDE)
    e = _exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]
    tl.store(out_ptr + row * n + column, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _softmax_lanes(x_ptr, out_ptr, n, inner, blocks, BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr):
    """Any n along a dimension of stride ``inner``; a tile walks down n with LANES neighbouring lanes at a time."""
    outer = (tl.program_id(0) // blocks).to(tl.int64)
    lane = (tl.program_id(0) % blocks).to(tl.int64) * LANES + tl.arange(0, LANES)[:, None]
    step = tl.arange(0, BLOCK)[None, :]
    start = outer * n * inner + lane
    highest = tl.full((LANES, 1), float("-inf"), WIDE)
    total = tl.zeros((LANES, 1), WIDE)
    for first in range(0, n, BLOCK):
        inside = (first + step < n) & (lane < inner)
        offset = start + (first + step).to(tl.int64) * inner
        x = tl.load(x_ptr + offset, mask=inside, other=float("-inf")).to(WIDE)
        above = tl.maximum(highest, tl.max(x, axis=1)[:, None])
        # While every value is -inf, a difference from the maximum would be NaN.
        base = tl.where(above == float("-inf"), 0.0, above)
        total = total * _exp(highest - base) + tl.sum(_exp(x - base), axis=1)[:, None]
        highest = above
    base = tl.where(highest == float("-inf"), 0.0, highest)
    for first in range(0, n, BLOCK):
        inside = (first + step < n) & (lane < inner)
        offset = start + (first + step).to(tl.int64) * inner
        x = tl.load(x_ptr + offset, mask=inside, other=float("-inf")).to(WIDE)
        y = _exp(x - base) / total
        tl.store(out_ptr + offset, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _totals(x_ptr, highest_ptr, total_ptr, n, inner, parts, walk, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """The maximum of a part of a line, which is ``walk`` blocks, and the sum of exp(x - maximum)."""
    line, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    x_ptr += line // inner * n * inner + line % inner
    highest = tl.full((1,), float("-inf"), WIDE)
    total = tl.zeros((1,), WIDE)
    for block in range(walk):
        i = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i * inner, mask=i < n, other=float("-inf")).to(WIDE)
        above = tl.maximum(highest, tl.max(x, axis=0))
        base = tl.where(above == float("-inf"), 0.0, above)
        total = total * _exp(highest - base) + tl.sum(_exp(x - base), axis=0)
        highest = above
    at = tl.program_id(0) + tl.arange(0, 1)
    tl.store(highest_ptr + at, highest)
    tl.store(total_ptr + at, total)


@triton.jit
def _softmax_parts(
    x_ptr, out_ptr, highest_ptr, total_ptr, n, inner, parts, walk,
    BLOCK: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """The result of a part, from the totals of all parts of its line."""
    line, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    each = tl.arange(0, PARTS)
    highest = tl.load(highest_ptr + line * parts + each, mask=each < parts, other=float("-inf"))
    total = tl.load(total_ptr + line * parts + each, mask=each < parts, other=0.0)
    base = tl.max(highest, axis=0)
    base = tl.where(base == float("-inf"), 0.0, base)
    total = tl.sum(total * _exp(highest - base), axis=0)
    start = line // inner * n * inner + line % inner
    for block in range(walk):
        i = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + i * inner, mask=i < n, other=float("-inf")).to(WIDE)
        y = _exp(x - base) / total
        tl.store(out_ptr + start + i * inner, y.to(out_ptr.dtype.element_ty), mask=i < n)


def _in_parts(x, out, n, inner, lines, wide):
    """Softmax of a few long lines of stride ``inner``."""
    block = 4096
    parts = min(1024, triton.cdiv(n, 8 * block))
    walk = triton.cdiv(n, block * parts)
    dtype = torch.float64 if wide == tl.float64 else torch.float32
    highest, total = torch.empty((2, lines, parts), dtype=dtype, device=x.device)
    _totals[(lines * parts,)](x, highest, total, n, inner, parts, walk, block, wide, num_warps=8)
    _softmax_parts[(lines * parts,)](
        x, out, highest, total, n, inner, parts, walk, block, triton.next_power_of_2(parts), wide, num_warps=8
    )


def softmax_int(self, dim, dtype=None):
    """Softmax of ``self`` (any shape) along ``dim``; contiguous, in ``dtype`` or in that of ``self``."""
    out = torch.empty(self.shape, dtype=dtype or self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    x = self.contiguous()
    n = x.shape[dim] if x.ndim else 1
    # Not from the strides: a dimension of size 1 may have any and still count as contiguous.
    inner = x.shape[dim:].numel() // n if x.ndim else 1
    outer = x.numel() // (n * inner)
    wide = tl.float64 if torch.float64 in (x.dtype, out.dtype) else tl.float32
    tile = 4096 if x.is_cuda else 1 << 18
    if inner == 1 and n <= 16384:
        block = triton.next_power_of_2(n)
        rows = max(1, min(tile // block, triton.next_power_of_2(outer)))
        warps = max(1, min(16, rows * block // 512))
        _softmax_rows[(triton.cdiv(outer, rows),)](x, out, outer, n, rows, block, wide, num_warps=warps)
    elif outer * inner < 256 and n > 1 << 16:
        _in_parts(x, out, n, inner, outer * inner, wide)
    else:
        lanes = min(triton.next_power_of_2(inner), 16 if x.is_cuda else 4096)
        block = max(1, min(triton.next_power_of_2(n), tile // lanes))
        blocks = triton.cdiv(inner, lanes)
        _softmax_lanes[(outer * blocks,)](x, out, n, inner, blocks, block, lanes, wide, num_warps=8)
    return out
