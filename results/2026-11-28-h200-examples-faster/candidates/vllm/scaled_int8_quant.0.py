"""scaled_int8_quant: codes of 8 bits by a given scale, or by one per row from its largest element or its range.

Elements are multiplied by the inverse of the scale, in two factors so that it never overflows. A row whose scale is
to be found is read once where it fits into one block, otherwise once for the scale and once for the codes.
"""

import triton
import triton.language as tl


@triton.jit
def _factors(top, bottom):
    """Two factors whose product is top / bottom, which may be too large for float32."""
    first = tl.where(tl.abs(bottom) < 7.888609052210118e-31, 1.2676506002282294e30, 1.0)  # 2^-100, 2^100
    return first, tl.div_rn(top, bottom * first)


@triton.jit
def _integer(x):
    """The nearest int32, of a tie the even one, but beyond 2^22, where float32 has no other fraction than a half."""
    x = tl.minimum(tl.maximum(x, -2147483648.0), 2147483520.0)
    shift = 12582912.0  # 1.5 * 2^23
    return tl.where(tl.abs(x) < 4194304.0, (x + shift) - shift, x).to(tl.int32)


@triton.jit
def _codes(x, zero, HAS_AZP: tl.constexpr):
    if HAS_AZP:
        # Clamped before the addition, whose sum might leave 32 bits. So might these bounds without their own.
        least = -128 - tl.minimum(zero, 2147483520)
        most = 127 - tl.maximum(zero, -2147483520)
        return (tl.minimum(tl.maximum(_integer(x), least), most) + zero).to(tl.int8)
    else:
        # The sum's last bits are the nearest integer.
        x = tl.minimum(tl.maximum(x, -128.0), 127.0) + 12582912.0
        return (x.to(tl.int32, bitcast=True) - 0x4B400000).to(tl.int8)


@triton.jit
def _static(out_ptr, x_ptr, scale_ptr, azp_ptr, total, HAS_AZP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    first, second = _factors(1.0, tl.load(scale_ptr))
    x = tl.load(x_ptr + at, mask=at < total, other=0.0).to(tl.float32)
    zero = 0
    if HAS_AZP:
        zero = tl.load(azp_ptr)
    tl.store(out_ptr + at, _codes(x * first * second, zero, HAS_AZP), mask=at < total)


@triton.jit
def _bounds(x, inside, HAS_AZP: tl.constexpr):
    """What the most and the least are taken of; without zero point only magnitudes count."""
    if HAS_AZP:
        return tl.where(inside, x, float("-inf")), tl.where(inside, x, float("inf"))
    else:
        return tl.abs(x), tl.abs(x)


@triton.jit
def _dynamic(
    out_ptr, x_ptr, scale_ptr, azp_ptr, n, scale_row, azp_row,
    HAS_AZP: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One row; WHOLE: it is one block."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n
    out_ptr += row * n
    i = tl.arange(0, BLOCK)
    if WHOLE:
        x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32)
        high, low = _bounds(x, i < n, HAS_AZP)
    else:
        # Beyond the last block a counter of 32 bits would go on at negative places.
        n = tl.full((), n, tl.int64)
        high = tl.full([BLOCK], float("-inf"), tl.float32)
        low = tl.full([BLOCK], float("inf"), tl.float32)
        for start in range(0, n, BLOCK):
            part = tl.load(x_ptr + start + i, mask=start + i < n, other=0.0).to(tl.float32)
            part_high, part_low = _bounds(part, start + i < n, HAS_AZP)
            high = tl.maximum(high, part_high)
            low = tl.minimum(low, part_low)
    most = tl.max(high, axis=0)
    zero = 0
    if HAS_AZP:
        least = tl.min(low, axis=0)
        scale = tl.div_rn(most - least, 255.0)
        divisor = tl.where(scale > 0, scale, 1.0)
        zero = _integer(tl.where(scale > 0, -128.0 - tl.div_rn(least, divisor), 0.0))
        tl.store(azp_ptr + row * azp_row, zero)
        first, second = _factors(1.0, divisor)
    else:
        scale = tl.div_rn(most, 127.0)
        first, second = _factors(127.0, tl.where(most > 0, most, 1.0))
    tl.store(scale_ptr + row * scale_row, scale)
    if WHOLE:
        tl.store(out_ptr + i, _codes(x * first * second, zero, HAS_AZP), mask=i < n)
    else:
        for start in range(0, n, BLOCK):
            part = tl.load(x_ptr + start + i, mask=start + i < n, other=0.0).to(tl.float32)
            tl.store(out_ptr + start + i, _codes(part * first * second, zero, HAS_AZP), mask=start + i < n)


def scaled_int8_quant_static(result, input, scale, azp):
    """result, input: dense, of one shape; scale, azp: one number each, azp None for 0."""
    total = input.numel()
    if total == 0:
        return
    block = 4096 if total >= 4096 * 132 else 1024
    _static[(triton.cdiv(total, block),)](
        result, input, scale, azp, total, HAS_AZP=azp is not None, BLOCK=block, num_warps=4
    )


def scaled_int8_quant_dynamic(result, input, scale, azp):
    """result, input: (rows, n), dense; scale and azp, if any, are written: one number per row."""
    rows, n = input.shape
    if input.numel() == 0:
        return
    if rows >= 1 << 31:  # more than the programs of a grid
        for first in range(0, rows, 1 << 30):
            part = slice(first, first + (1 << 30))
            scaled_int8_quant_dynamic(result[part], input[part], scale[part], None if azp is None else azp[part])
        return
    whole = n <= 32768
    block = triton.next_power_of_2(n) if whole else 8192
    warps = max(1, min(8, block // 512)) if block <= 8192 else block // 1024
    _dynamic[(rows,)](
        result, input, scale, azp, n, scale.stride(0), 0 if azp is None else azp.stride(0),
        HAS_AZP=azp is not None, WHOLE=whole, BLOCK=block, num_warps=warps if whole else 16,
    )  # fmt: skip
