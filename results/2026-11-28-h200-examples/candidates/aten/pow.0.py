"""pow: powers in float32 or float64 by a logarithm in two parts, of integers by squaring; 1, 2 and 3 by products.

Logarithm and product are kept to half as many digits more than the dtype has, as in fdlibm's pow.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _high(v):
    """The upper half of the significand: products of two of them are exact."""
    if v.dtype == tl.float64:
        return (v.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)
    else:
        return (v.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)


@triton.jit
def _log2(x, BITS: tl.constexpr, ROOT: tl.constexpr, TERMS: tl.constexpr):
    """log2(x) for x > 0 in two parts, the way of fdlibm's pow: BITS of a significand, ROOT the bits of sqrt(1/2)."""
    # A subnormal number is scaled to a normal one.
    subnormal = x < (2.2250738585072014e-308 if x.dtype == tl.float64 else 1.1754943508222875e-38)
    scaled = tl.where(subnormal, x * (2.0 * (1 << BITS)), x)
    bits = scaled.to(tl.int64 if x.dtype == tl.float64 else tl.int32, bitcast=True)
    exponent = (bits - ROOT) >> BITS
    m = (bits - (exponent << BITS)).to(x.dtype, bitcast=True)
    exponent = exponent.to(x.dtype) - tl.where(subnormal, BITS + 1.0, 0.0)
    # s = (m - 1) / (m + 1), and log(m) = 2 s + 2/3 s**3 + 2/5 s**5 + ...
    inverse = 1.0 / (m + 1.0)
    s = (m - 1.0) * inverse
    s_high, sum_high = _high(s), _high(m + 1.0)
    s_low = inverse * (((m - 1.0) - s_high * sum_high) - s_high * (m - (sum_high - 1.0)))
    z = s * s
    series = tl.zeros_like(z) + 3.0 / (2 * TERMS + 3)
    for back in tl.static_range(1, TERMS):
        series = series * z + 3.0 / (2 * (TERMS - back) + 3)
    rest = z * z * series + s_low * (s_high + s)
    z = s_high * s_high
    t_high = _high((3.0 + z) + rest)
    t_low = rest - ((t_high - 3.0) - z)
    u = s_high * t_high
    v = s_low * t_high + t_low * s
    p_high = _high(u + v)
    p_low = v - (p_high - u)
    # Times 2 / (3 log(2)), in two parts as well.
    if x.dtype == tl.float64:
        high = 9.61796700954437255859e-01 * p_high
        low = -7.02846165095275826516e-09 * p_high + p_low * 9.61796693925975554329e-01
    else:
        high = 0.9619140625 * p_high
        low = -1.1736857402e-04 * p_high + p_low * 0.9617966939259756
    log = _high((high + low) + exponent)
    return log, low - ((log - exponent) - high)


@triton.jit
def _exp2(high, low):
    """2 ** (high + low), whose whole part becomes the exponent in two steps, so that no factor overflows."""
    n = tl.floor((high + low) + 0.5)
    f = (high - n) + low
    if f.dtype == tl.float64:
        k = n.to(tl.int64)
        half = k >> 1
        one = ((half + 1023) << 52).to(tl.float64, bitcast=True)
        other = ((k - half + 1023) << 52).to(tl.float64, bitcast=True)
        return (tl.exp2(f) * one) * other
    else:
        k = n.to(tl.int32)
        half = k >> 1
        one = ((half + 127) << 23).to(tl.float32, bitcast=True)
        other = ((k - half + 127) << 23).to(tl.float32, bitcast=True)
        p = 0.05550410866482158 + f * (0.009618129107628477 + f * (0.0013333558146428443 + f * (0.00015403530393381608
            + f * 1.525273380405984e-05)))  # fmt: skip
        return ((1.0 + f * (0.6931471805599453 + f * (0.2402265069591007 + f * p))) * one) * other


@triton.jit
def _pow_floating(x, y):
    size = tl.abs(x)
    if x.dtype == tl.float64:
        log_high, log_low = _log2(size, 52, 0x3FE6A09E667F3BCD, 13)
        negative = x.to(tl.int64, bitcast=True) < 0
    else:
        log_high, log_low = _log2(size, 23, 0x3F3504F3, 6)
        negative = x.to(tl.int32, bitcast=True) < 0
    most: tl.constexpr = 9223372036854775808.0 if x.dtype == tl.float64 else 2147483648.0
    limit: tl.constexpr = 1200.0 if x.dtype == tl.float64 else 200.0
    held = tl.where(y > most, most, tl.where(y < -most, -most, y))
    y_high = _high(held)
    low = (held - y_high) * log_high + held * log_low
    high = y_high * log_high
    over, under = high + low > limit, high + low < -limit
    high = tl.where(over, limit, tl.where(under, -limit, high))
    r = _exp2(high, tl.where(over | under, 0.0, low))
    # C's edges: zeros and infinities, signs, powers that are not whole, NaN, and what is 1 in spite of NaN.
    whole = tl.floor(y) == y
    odd = whole & (tl.floor(y * 0.5) != y * 0.5)
    r = tl.where(size == 0, tl.where(y < 0, float("inf"), 0.0), r)
    r = tl.where(size == float("inf"), tl.where(y < 0, 0.0, float("inf")), r)
    r = tl.where(negative & odd, -r, r)
    r = tl.where((x < 0) & (size < float("inf")) & (whole == 0), float("nan"), r)
    r = tl.where((x != x) | (y != y), float("nan"), r)
    return tl.where((y == 0) | (x == 1.0), 1.0, r)


@triton.jit
def _pow_whole(x, y):
    """By squaring, modulo 2**64."""
    r = x * 0 + 1
    for _ in range(63):
        r = tl.where((y & 1) == 1, r * x, r)
        x = x * x
        y = y >> 1
    return r


@triton.jit
def _pow(x, y, POWER: tl.constexpr, TWO: tl.constexpr):
    """POWER: y is this, or 0: anything. TWO: x is 2, and both are float32."""
    if POWER == 1:
        return x
    elif POWER == 2:
        return x * x
    elif POWER == 3:
        return x * x * x
    elif TWO:
        held = tl.where(y > 200.0, 200.0, tl.where(y < -200.0, -200.0, y))
        return tl.where(y == y, _exp2(held, 0.0), y)
    elif x.dtype == tl.int64:
        return _pow_whole(x, y)
    else:
        return _pow_floating(x, y)


@triton.jit
def _place(row, column, sizes, strides, DIMS: tl.constexpr):
    """Where elements lie: columns count through the last dimension, rows through the others."""
    at = column * strides[DIMS - 1]
    for back in tl.static_range(2, DIMS + 1):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    return at


@triton.jit
def _tile(
    a_ptr, b_ptr, out_ptr, rows, n, sizes, a_strides, b_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, A_NUMBER: tl.constexpr, B_NUMBER: tl.constexpr,
    POWER: tl.constexpr, TWO: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    if A_NUMBER:
        b = tl.load(b_ptr + _place(row, column, sizes, b_strides, DIMS), mask=inside, other=0).to(WIDE)
        # Not a pointer then, but the number.
        a = tl.full(b.shape, a_ptr, WIDE)
    else:
        a = tl.load(a_ptr + _place(row, column, sizes, a_strides, DIMS), mask=inside, other=0).to(WIDE)
        if B_NUMBER:
            b = tl.full(a.shape, b_ptr, WIDE)
        else:
            b = tl.load(b_ptr + _place(row, column, sizes, b_strides, DIMS), mask=inside, other=0).to(WIDE)
    y = _pow(a, b, POWER, TWO)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), y.to(out_ptr.dtype.element_ty), mask=inside)


def _merged(shape, *strides):
    """Sizes and strides in the order of the last operand's memory, neighbours merged where every operand allows it."""
    dims = [dim for dim in zip(shape, *strides, strict=True) if dim[0] != 1] or [(1,) * (1 + len(strides))]
    dims.sort(key=lambda dim: -dim[-1])
    merged = dims[:1]
    for size, *steps in dims[1:]:
        if all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    return tuple(zip(*merged, strict=True))


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _number(value, dtype, device):
    """``value`` as a kernel takes it: integers wrapped to 64 bits; as an argument it would be float32 at most."""
    if dtype == torch.float64:
        return torch.full((), value, dtype=dtype, device=device)
    return float(value) if dtype.is_floating_point else (int(value) + (1 << 63)) % (1 << 64) - (1 << 63)


def _filled(out, a, b, dtype, power=0, two=False):
    """``a`` or ``b`` may be a number."""
    if out.numel() == 0:
        return out
    a_number, b_number = (not isinstance(each, torch.Tensor) for each in (a, b))
    a, b = (each if isinstance(each, (int, float)) else _bytes_if_bool(each.expand(out.shape)) for each in (a, b))
    # A number has no strides; those of the result stand in for them.
    steps = [out.stride() if number else each.stride() for each, number in ((a, a_number), (b, b_number))]
    sizes, *strides = _merged(out.shape, *steps, out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 1024 if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    wide = tl.float64 if dtype == torch.float64 else tl.float32 if dtype.is_floating_point else tl.int64
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](
        a, b, _bytes_if_bool(out), rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns,
        A_NUMBER=a_number, B_NUMBER=b_number, POWER=power, TWO=two, WIDE=wide,
    )  # fmt: skip
    return out


def pow_Tensor_Tensor(self, exponent):
    """With broadcasting, in the promoted dtype."""
    shape = torch.broadcast_shapes(self.shape, exponent.shape)
    out = torch.empty(shape, dtype=torch.result_type(self, exponent), device=self.device)
    return _filled(out, self, exponent, out.dtype)


def pow_Tensor_Tensor_out(self, exponent, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self, exponent, torch.result_type(self, exponent))


def pow_Tensor_Scalar(self, exponent):
    """With a number as the exponent."""
    dtype = torch.result_type(self, exponent)
    out = torch.empty_like(self, dtype=dtype)
    power = int(exponent) if exponent in (1, 2, 3) else 0
    return _filled(out, self, _number(exponent, dtype, self.device), dtype, power=power)


def pow_Scalar(self, exponent):
    """With a number as the base."""
    dtype = torch.result_type(self, exponent)
    out = torch.empty_like(exponent, dtype=dtype)
    two = self == 2 and dtype.is_floating_point and dtype != torch.float64
    return _filled(out, _number(self, dtype, exponent.device), exponent, dtype, two=two)
