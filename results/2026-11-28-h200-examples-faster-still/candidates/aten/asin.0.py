"""asin: a polynomial up to 1/2, and from there pi / 2 - 2 asin(sqrt((1 - x) / 2)).

Numbers are float32 inside (float64 for float64 and complex numbers), rounded once when stored. Memory without gaps is
read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _near_zero(s, z):
    """asin(s), of which z is the square, up to 1/2; float32."""
    p = (4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2
    p = ((p * z + 7.4953002686e-2) * z + 1.6666752422e-1) * z
    return s * p + s


@triton.jit
def _with_sign(y, x):
    """float32, y >= 0 or NaN with the sign of x, by its bit, which -0 has, too."""
    sign = x.to(tl.int32, bitcast=True) & -2147483648
    return (y.to(tl.int32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@triton.jit
def _asin_coarse(x):
    """float32, good enough for bfloat16."""
    size = tl.abs(x)
    far = size > 0.5
    rest = 0.5 - size * 0.5
    y = _near_zero(tl.where(far, tl.sqrt(rest), size), tl.where(far, rest, size * size))
    return _with_sign(tl.where(far, 1.5707963267948966 - 2.0 * y, y), x)


@triton.jit
def _asin(x):
    """float32."""
    size = tl.abs(x)
    far = size > 0.5
    rest = (1.0 - size) * 0.5
    # The square root, refined: faster than sqrt_rn. It is NaN below 0, and 0 at 0 as the reciprocal is not infinite.
    reciprocal = tl.rsqrt(rest + 1.0e-30)
    root = rest * reciprocal
    root = tl.fma(tl.fma(-root, root, rest), reciprocal * 0.5, root)
    y = _near_zero(tl.where(far, root, size), tl.where(far, rest, size * size))
    # pi / 2 in two parts.
    return _with_sign(tl.where(far, 1.5707963705062866 - (2.0 * y + 4.37113900018624283e-8), y), x)


@triton.jit
def _asin_64(x):
    size = tl.abs(x)
    far = size > 0.5
    rest = (1.0 - size) * 0.5
    z = tl.where(far, rest, size * size)
    s = tl.where(far, tl.sqrt(rest), size)
    p = -4.00555345006794114027e-02 + z * (7.91534994289814532176e-04 + z * 3.47933107596021167570e-05)
    p = -3.25565818622400915405e-01 + z * (2.01212532134862925881e-01 + z * p)
    p = z * (1.66666666666666657415e-01 + z * p)
    q = 2.02094576023350569471e00 + z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02)
    q = 1.0 + z * (-2.40339491173441421878e00 + z * q)
    y = s + s * (p / q)
    y = tl.where(far, 1.57079632679489655800e00 - (2.0 * y - 6.12323399573676603587e-17), y)
    y = tl.where(x < 0, -y, y)
    return tl.where(size == 0, x, y)


@triton.jit
def _asin_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, eviction_policy="evict_first")
    if x.dtype == tl.float64:
        y = _asin_64(x)
    elif x.dtype == tl.bfloat16:
        y = _asin_coarse(x.to(tl.float32))
    else:
        y = _asin(x.to(tl.float32))
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _quadrant(x, y):
    """asin(x + iy) for x >= 0 and y >= 0, by the formulas of Hull, Fairgrieve and Tang: real and imaginary part."""
    right, left, yy = x + 1.0, x - 1.0, y * y
    r = tl.sqrt(right * right + yy)
    s = tl.sqrt(left * left + yy)
    a = 0.5 * (r + s)
    b = x / a
    inner = yy / (r + right) + (s + (1.0 - tl.where(x <= 1.0, x, 1.0)))
    outer = (a + x) / (r + right) + (a + x) / tl.where(x > 1.0, s + left, 1.0)
    d = tl.where(x <= 1.0, tl.sqrt(0.5 * (a + x) * inner), y * tl.sqrt(0.5 * outer))
    h = tl.sqrt(d * d + x * x)
    steep = 1.57079632679489655800e00 - _asin_64(d / tl.where(h == 0.0, 1.0, h))
    real = tl.where(b <= 0.6417, _asin_64(tl.where(b <= 0.6417, b, 0.0)), steep)
    # log(a + sqrt(a * a - 1)), near a = 1 by the difference a - 1.
    above = tl.where(x < 1.0, yy / tl.where(x < 1.0, s + (1.0 - x), 1.0), s + left)
    above = 0.5 * (yy / (r + right) + above)
    t = above + tl.sqrt(above * (a + 1.0))
    u = 1.0 + t
    near = tl.where(u == 1.0, t, tl.log(u) * (t / tl.where(u == 1.0, 1.0, u - 1.0)))
    far = tl.log(a + tl.sqrt(tl.where(a <= 1.5, 1.0, a * a - 1.0)))
    return real, tl.where(a <= 1.5, near, far)


@triton.jit
def _asin_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (x, y): both parts have the signs of x and y."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    signed_x = tl.load(z_ptr + 2 * i, mask=i < n, other=0.0)
    signed_y = tl.load(z_ptr + 2 * i + 1, mask=i < n, other=0.0)
    x, y = tl.abs(signed_x.to(tl.float64)), tl.abs(signed_y.to(tl.float64))
    real, imaginary = _quadrant(x, y)
    # C99: infinities and NaN.
    wide, high = x == float("inf"), y == float("inf")
    real = tl.where(wide, 1.57079632679489655800, tl.where(high, 0.0, real))
    real = tl.where(wide & high, 0.78539816339744830962, real)
    imaginary = tl.where(wide | high, float("inf"), imaginary)
    real = tl.where((x != x) | (y != y), tl.where((y != y) & (x == 0.0), 0.0, float("nan")), real)
    imaginary = tl.where(((x != x) & ~high) | ((y != y) & ~wide), float("nan"), imaginary)
    # By their bits, which -0 has, too.
    bits = tl.int64 if signed_x.dtype == tl.float64 else tl.int32
    real = tl.where(signed_x.to(bits, bitcast=True) < 0, -real, real)
    imaginary = tl.where(signed_y.to(bits, bitcast=True) < 0, -imaginary, imaginary)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    if x.is_complex():
        block = 256 if x.is_cuda else 1 << 16
        _asin_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (128 if n <= 1 << 16 else 2048 if x.dtype == torch.bfloat16 else 1024) if x.is_cuda else 1 << 16
    _asin_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, num_warps=4)
    return out


def asin(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.resolve_conj()
    out = torch.empty_like(x, dtype=dtype)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def asin_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.resolve_conj().contiguous())
    return out.copy_(asin(self))
