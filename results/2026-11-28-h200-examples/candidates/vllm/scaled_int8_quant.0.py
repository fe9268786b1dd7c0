"""scaled_int8_quant: codes of 8 bits by a given scale, or by one per row from its largest element or its range."""

import triton
import triton.language as tl


@triton.jit
def _nearest(x):
    """The nearest integer, of a tie the even one, but beyond 2²², where float32 has no other fraction than a half."""
    shift = 12582912.0  # 1.5 * 2²³
    return tl.where(tl.abs(x) < 4194304.0, (x + shift) - shift, tl.floor(x + 0.5))


@triton.jit
def _codes(x, scale, zero):
    return tl.minimum(tl.maximum(_nearest(tl.div_rn(x, scale)) + zero, -128.0), 127.0).to(tl.int8)


@triton.jit
def _static(out_ptr, x_ptr, scale_ptr, azp_ptr, total, HAS_AZP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < total, other=0.0).to(tl.float32)
    scale = tl.full((BLOCK,), 1.0, tl.float32) * tl.load(scale_ptr)
    zero = 0.0
    if HAS_AZP:
        zero = tl.load(azp_ptr).to(tl.float32)
    tl.store(out_ptr + at, _codes(x, scale, zero), mask=at < total)


@triton.jit
def _dynamic(
    out_ptr, x_ptr, scale_ptr, azp_ptr, rows, n, HAS_AZP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """ROWS rows, read once for the scale and once, from the cache, for the codes."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    # Beyond the last block a counter of 32 bits would go on at negative places.
    n = tl.full((), n, tl.int64)
    low = tl.full((ROWS, BLOCK), float("inf"), tl.float32)
    high = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    for first in range(0, n, BLOCK):
        inside = (row < rows) & (first + column < n)
        x = tl.load(x_ptr + row * n + first + column, mask=inside, other=0.0).to(tl.float32)
        low = tl.minimum(low, tl.where(inside, x, float("inf")))
        high = tl.maximum(high, tl.where(inside, x, float("-inf")))
    least, most = tl.min(low, axis=1)[:, None], tl.max(high, axis=1)[:, None]
    if HAS_AZP:
        scale = (most - least) / 255.0
        zero = _nearest(-128.0 - tl.div_rn(least, scale))
        tl.store(azp_ptr + row, zero.to(tl.int32), mask=row < rows)
    else:
        scale = tl.maximum(most, -least) / 127.0
        zero = tl.zeros((ROWS, 1), tl.float32)
    tl.store(scale_ptr + row, scale, mask=row < rows)
    divisor = tl.broadcast_to(tl.where(scale == 0, 1.0, scale), (ROWS, BLOCK))
    for first in range(0, n, BLOCK):
        inside = (row < rows) & (first + column < n)
        x = tl.load(x_ptr + row * n + first + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n + first + column, _codes(x, divisor, zero), mask=inside)


def scaled_int8_quant_static(result, input, scale, azp):
    """result, input: dense, of one shape; scale, azp: one number each, azp None for 0."""
    total = input.numel()
    block = 2048 if input.is_cuda else 1 << 17
    _static[(triton.cdiv(total, block),)](
        result, input, scale, azp, total, HAS_AZP=azp is not None, BLOCK=block, num_warps=8
    )


def scaled_int8_quant_dynamic(result, input, scale, azp):
    """result, input: (rows, n), dense; scale and azp, if any, are written: one number per row."""
    rows, n = input.shape
    block = min(8192, triton.next_power_of_2(n))
    tile = 2048 if input.is_cuda else 1 << 18
    per = max(1, min(tile // block, triton.next_power_of_2(rows)))
    _dynamic[(triton.cdiv(rows, per),)](
        result, input, scale, azp, rows, n, HAS_AZP=azp is not None, ROWS=per, BLOCK=block,
        num_warps=max(1, min(8, per * block // 512)),
    )  # fmt: skip
