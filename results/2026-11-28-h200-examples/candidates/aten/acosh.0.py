"""acosh: log(1 + u) for u = (x - 1) + sqrt((x - 1) (x + 1)), with what 1 + u rounds away added again.

Numbers are float32 inside (float64 for float64 and complex numbers), rounded once when stored. Memory without gaps is
read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _acosh(x, BF16: tl.constexpr):
    if BF16:
        # 8 bits are left: those that this form loses near 1 do not matter.
        huge = x > 1.0e9
        w = tl.where(huge, x, x + tl.sqrt(x * x - 1.0))
        y = tl.log(w) + tl.where(huge, 0.6931471805599453, 0.0)
    else:
        # Where x * x overflows, acosh(x) is log(2 x).
        huge = x > (1.0e100 if x.dtype == tl.float64 else 1.0e15)
        u = (x - 1.0) + tl.sqrt((x - 1.0) * (x + 1.0))
        w = 1.0 + u
        lost = u - (w - 1.0)
        log_2 = tl.full(x.shape, 0.6931471805599453, x.dtype)
        y = tl.log(tl.where(huge, x, w)) + tl.where(huge, log_2, lost / w)
    return tl.where(x >= 1.0, y, float("nan"))


@triton.jit
def _acosh_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1).to(WIDE)
    y = _acosh(x, out_ptr.dtype.element_ty == tl.bfloat16)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def _root(a, b):
    """The square root of a + ib for b >= 0: its real part and its imaginary one."""
    larger = tl.sqrt((tl.sqrt(a * a + b * b) + tl.abs(a)) * 0.5)
    smaller = b / (2.0 * tl.where(larger > 0.0, larger, 1.0))
    return tl.where(a >= 0.0, larger, smaller), tl.where(a >= 0.0, smaller, larger)


@triton.jit
def _angle(y, x):
    """atan2 for y >= 0 and x >= 0, from a polynomial up to tan(pi / 8)."""
    larger = tl.maximum(y, x)
    q = tl.minimum(y, x) / tl.where(larger > 0.0, larger, 1.0)
    far = q > 0.41421356237309503
    v = tl.where(far, (q - 1.0) / (q + 1.0), q)
    z = v * v
    s = z * 1.62858201153657823623e-02 - 3.65315727442169155270e-02
    s = s * z + 4.97687799461593236017e-02
    s = s * z - 5.83357013379057348645e-02
    s = s * z + 6.66107313738753120669e-02
    s = s * z - 7.69187620504482999495e-02
    s = s * z + 9.09088713343650656196e-02
    s = s * z - 1.11111104054623557880e-01
    s = s * z + 1.42857142725034663711e-01
    s = s * z - 1.99999999998764832476e-01
    s = s * z + 3.33333333333329318027e-01
    angle = v - v * (z * s)
    angle = tl.where(far, angle + 0.7853981633974483, angle)
    return tl.where(y > x, 1.5707963267948966 - angle, angle)


@triton.jit
def _acosh_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (a, b), in the upper half plane; b's sign is that of the imaginary part."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(z_ptr + 2 * i, mask=i < n, other=0.0).to(tl.float64)
    signed = tl.load(z_ptr + 2 * i + 1, mask=i < n, other=0.0)
    b = tl.abs(signed.to(tl.float64))
    infinite = (tl.abs(a) == float("inf")) | (b == float("inf"))
    nan = (a != a) | (b != b)
    usual = ~(infinite | nan)
    below_real, below_imaginary = _root(tl.where(usual, a, 1.0) - 1.0, tl.where(usual, b, 1.0))
    above_real, above_imaginary = _root(tl.where(usual, a, 1.0) + 1.0, tl.where(usual, b, 1.0))
    # asinh(Re(conj(sqrt(z - 1)) sqrt(z + 1)))
    p = below_real * above_real + below_imaginary * above_imaginary
    u = p + p * (p / (1.0 + tl.sqrt(1.0 + p * p)))
    w = 1.0 + u
    real = tl.log(w) + (u - (w - 1.0)) / w
    # 2 atan2(Im sqrt(z - 1), Re sqrt(z + 1)); of infinities the angle of z itself.
    angle = _angle(
        tl.where(usual, below_imaginary, tl.where(b == float("inf"), 1.0, 0.0)),
        tl.where(usual, above_real, tl.where(tl.abs(a) == float("inf"), 1.0, 0.0)),
    )
    imaginary = tl.where(usual, 2.0 * angle, tl.where(a < 0.0, 3.141592653589793 - angle, angle))
    imaginary = tl.where(nan, float("nan"), imaginary)
    # C99: 0 + NaN i has the imaginary part pi / 2, and an infinity beside NaN the real part inf.
    imaginary = tl.where((a == 0.0) & (b != b), 1.5707963267948966, imaginary)
    real = tl.where(infinite, float("inf"), tl.where(nan, float("nan"), real))
    # By its bit, which -0 has, too.
    bits = signed.to(tl.int64 if signed.dtype == tl.float64 else tl.int32, bitcast=True)
    imaginary = tl.where(bits < 0, -imaginary, imaginary)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    if x.is_complex():
        block = 256 if x.is_cuda else 1 << 16
        _acosh_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (256 if n <= 1 << 19 else 2048 if x.dtype == torch.bfloat16 else 1024) if x.is_cuda else 1 << 16
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    _acosh_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, WIDE=wide)
    return out


def acosh(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.resolve_conj()
    out = torch.empty_like(x, dtype=dtype)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def acosh_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.resolve_conj().contiguous())
    return out.copy_(acosh(self))
