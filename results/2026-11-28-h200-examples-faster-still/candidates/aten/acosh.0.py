"""acosh: log(1 + u) for u = (x - 1) + sqrt((x - 1) (x + 1)): its exponent times ln 2, and a polynomial of the rest.

float64 and complex numbers take the logarithm and add again what 1 + u rounds away. Memory without gaps is read as it
lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _acosh_coarse(x):
    """float32, good enough for bfloat16: the logarithm of 2 h, 2 h = 2^k (1 + f) with f from -1/3 to 1/3."""
    half = x * 0.5
    h = tl.sqrt(half - 0.5) * tl.sqrt(half + 0.5) + half
    bits = h.to(tl.int32, bitcast=True)
    # k in the place of the exponent, so in units of 2^-23: ln 2 * 2^-23 is 8.26e-08.
    k = (bits - 0x3EAAAAAB) & -8388608
    f = (bits - k + 0x00800000).to(tl.float32, bitcast=True) - 1.0
    p = -0.1644081175327301 + f * (0.1699056178331375 + f * -0.1526680886745453)
    p = -0.49999961256980896 + f * (0.33336734771728516 + f * (-0.2500632405281067 + f * (0.19818168878555298 + f * p)))
    y = k.to(tl.float32) * 8.262958294867817e-08 + ((f * f) * p + f)
    return tl.where(h < float("inf"), y, h)


@triton.jit
def _acosh(x):
    """float32: the logarithm of 1 + u = 2^k (1 + f), by u / 16, which does not overflow."""
    t = x - 1.0
    root = tl.where(x > 1.0e9, x, tl.sqrt(t * (x + 1.0)))
    u = t * 0.0625 + root * 0.0625
    k = ((u + 0.0625).to(tl.int32, bitcast=True) - 0x3D2AAAAB) & -8388608
    # 16 * 2^-k
    scale = (0x41800000 - k).to(tl.float32, bitcast=True)
    f = tl.fma(u, scale, tl.fma(scale, 0.0625, -1.0))
    p = 0.13995806872844696 + f * (-0.15388548374176025 + f * 0.14026358723640442)
    p = -0.2500782012939453 + f * (0.20011168718338013 + f * (-0.1641595959663391 + f * p))
    p = -0.49999937415122986 + f * (0.33333197236061096 + f * p)
    y = k.to(tl.float32) * 8.262958294867817e-08 + ((f * f) * p + f)
    # Else t is negative, infinite or NaN, which the root makes NaN, infinite or NaN.
    return tl.where(t.to(tl.uint32, bitcast=True) < 0x7F800000, y, tl.sqrt(t))


@triton.jit
def _acosh_64(x):
    # Where x * x overflows, acosh(x) is log(2 x).
    huge = x > 1.0e100
    u = (x - 1.0) + tl.sqrt((x - 1.0) * (x + 1.0))
    w = 1.0 + u
    log_2 = tl.full(x.shape, 0.6931471805599453, x.dtype)
    y = tl.log(tl.where(huge, x, w)) + tl.where(huge, log_2, (u - (w - 1.0)) / w)
    return tl.where(x >= 1.0, y, float("nan"))


@triton.jit
def _acosh_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, eviction_policy="evict_first")
    if x.dtype == tl.float64:
        y = _acosh_64(x)
    elif x.dtype == tl.bfloat16:
        y = _acosh_coarse(x.to(tl.float32))
    else:
        y = _acosh(x.to(tl.float32))
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


def _blocks(x):
    """Elements and warps of a program."""
    n = x.numel()
    if not x.is_cuda:
        return 1 << 16, 4
    if n <= 1 << 16:
        return 128, 4
    block = {torch.bfloat16: 2048, torch.float64: 512}.get(x.dtype, 1024)
    # Blocks for each of 132 multiprocessors, or smaller ones.
    return (block, 4) if n > 528 * block else (256, 2)


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
    block, warps = _blocks(x)
    _acosh_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, num_warps=warps)
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
