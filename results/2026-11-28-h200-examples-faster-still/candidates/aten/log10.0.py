"""log10: the exponent's multiple of log10(2), a polynomial in the fraction; of complex numbers the principal value.

Numbers are float32 inside (float64 for float64 and complex numbers), rounded once when stored. Memory without gaps is
read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _log10(x, DENORMAL: tl.constexpr):
    """float32: x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). DENORMAL: there may be denormal numbers."""
    scale = 1.0
    if DENORMAL:
        scale = tl.where(x < 1.1754943508222875e-38, 8388608.0, 1.0)
    bits = (x * scale).to(tl.int32, bitcast=True)
    # k in the place of the exponent, so in units of 2^-23: log10(2) * 2^-23 is 3.59e-08.
    k = (bits - 0x3F3504F3) & -8388608
    f = (bits - k).to(tl.float32, bitcast=True) - 1.0
    if DENORMAL:
        k = k - (scale.to(tl.int32, bitcast=True) - 0x3F800000)
    p = 0.06493686874341126 + f * (-0.062394315051905416 + f * 0.037880595670365586)
    p = -0.10858262755414014 + f * (0.08667142854332421 + f * (-0.07192957262340503 + f * p))
    p = 0.43429447069411475 + f * (-0.21714718868321736 + f * (0.14476852869406392 + f * p))
    y = k.to(tl.float32) * 3.588557191657796e-08 + p * f
    # inf and NaN stay; then 0 and what is below.
    order = x.to(tl.int32, bitcast=True)
    y = tl.where(order < 0x7F800000, y, x)
    return tl.where(order > 0, y, tl.where(x == 0.0, float("-inf"), float("nan")))


@triton.jit
def _log10_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, eviction_policy="evict_first")
    if x.dtype == tl.float64:
        y = tl.log(x) * 0.43429448190325182765
    else:
        y = _log10(x.to(tl.float32), x.dtype == tl.float32 or x.dtype == tl.bfloat16)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _principal(x, y):
    """log10 of x + iy in float64: half the logarithm of x * x + y * y, and the angle."""
    any_inf = (tl.abs(x) == float("inf")) | (tl.abs(y) == float("inf"))
    any_nan = (x != x) | (y != y)
    # With an infinity the angle is that of a direction in which finite parts count as 0.
    a = tl.where(any_inf | any_nan, (tl.abs(x) == float("inf")).to(tl.float64), tl.abs(x))
    b = tl.where(any_inf | any_nan, (tl.abs(y) == float("inf")).to(tl.float64), tl.abs(y))
    steep = b > a
    high, low = tl.where(steep, b, a), tl.where(steep, a, b)
    squares = high * high + low * low
    # Near 1 the sum of squares less 1 is taken, which keeps what 1 + it would lose.
    near = (squares > 0.5) & (squares < 2.0)
    above = tl.where(near, (high - 1.0) * (high + 1.0) + low * low, 0.0)
    whole = 1.0 + above
    lost = above - (whole - 1.0)
    log = tl.where(near, tl.log(whole) + lost / whole, tl.log(tl.where(near, 1.0, squares)))
    real = tl.where(any_inf, float("inf"), tl.where(any_nan, float("nan"), log * 0.21714724095162590))
    angle = _arctan(low / tl.where(high > 0.0, high, 1.0))
    angle = tl.where(steep, 1.5707963267948966 - angle, angle)
    angle = tl.where(x.to(tl.int64, bitcast=True) < 0, 3.141592653589793 - angle, angle) * 0.43429448190325182765
    angle = tl.where(any_nan, float("nan"), angle)
    return real, tl.where(y.to(tl.int64, bitcast=True) < 0, -angle, angle)


@triton.jit
def _arctan(q):
    """For q from 0 to 1: fdlibm's polynomial, above tan(pi / 8) by way of (q - 1) / (q + 1)."""
    far = q > 0.41421356237309503
    v = tl.where(far, (q - 1.0) / (q + 1.0), q)
    z = v * v
    t = z * 1.62858201153657823623e-02 - 3.65315727442169155270e-02
    t = t * z + 4.97687799461593236017e-02
    t = t * z - 5.83357013379057348645e-02
    t = t * z + 6.66107313738753120669e-02
    t = t * z - 7.69187620504482999495e-02
    t = t * z + 9.09088713343650656196e-02
    t = t * z - 1.11111104054623557880e-01
    t = t * z + 1.42857142725034663711e-01
    t = t * z - 1.99999999998764832476e-01
    t = t * z + 3.33333333333329318027e-01
    return v - v * (z * t) + tl.where(far, 0.78539816339744831, 0.0)


@triton.jit
def _log10_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (x, y)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(z_ptr + 2 * i, mask=i < n, other=1.0).to(tl.float64)
    y = tl.load(z_ptr + 2 * i + 1, mask=i < n, other=0.0).to(tl.float64)
    real, imaginary = _principal(x, y)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def _blocks(x):
    """Elements and warps of a program."""
    if not x.is_cuda:
        return 1 << 16, 4
    if x.numel() <= 1 << 17:
        return 256, 2
    return min(4096 // x.element_size(), 2048), 4


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    if x.is_complex():
        block = 256 if x.is_cuda else 1 << 16
        _log10_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block, warps = _blocks(x)
    _log10_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, num_warps=warps)
    return out


def log10(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.resolve_conj()
    out = torch.empty_like(x, dtype=dtype)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def log10_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.resolve_conj().contiguous())
    return out.copy_(log10(self))
