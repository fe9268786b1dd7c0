"""softmax.int: one tile per program, the maximum and the sum in one pass, the result in a second.

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
    lane = (tl.program_id(0) % blocks) * LANES + tl.arange(0, LANES)[:, None]
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
    else:
        lanes = min(triton.next_power_of_2(inner), 16 if x.is_cuda else 4096)
        block = max(1, min(triton.next_power_of_2(n), tile // lanes))
        blocks = triton.cdiv(inner, lanes)
        _softmax_lanes[(outer * blocks,)](x, out, n, inner, blocks, block, lanes, wide, num_warps=8)
    return out
