"""erfc: of float32 exp(-x * x) times a polynomial in (|x| - 2) / (|x| + 2), of bfloat16 times a shorter one, of float64
fdlibm's four ranges.

Memory without gaps is read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _erfc_coarse(x):
    """float32, good enough for bfloat16, of which a * a is exact: exp(a * a) erfc(a) by 1 / (1 + 0.44 a)."""
    a = tl.abs(x)
    t = tl.rsqrt(a * 0.44 + 1.0)
    t = t * t
    p = 0.29542315006256104 + t * (-0.2772524058818817 + t * 0.07106450945138931)
    p = 0.21753807365894318 + t * (0.21511827409267426 + t * (-0.01894773729145527 + t * p))
    p = 0.24822364747524261 + t * (0.24883268773555756 + t * p)
    y = (p * t) * tl.exp2((a * a) * -1.4426950408889634)
    return tl.where(x < 0, 2.0 - y, y)


@triton.jit
def _erfc(x):
    """float32."""
    a = tl.abs(x)
    u, v = a + 2.0, a * 2.0 + 1.0
    # 1 / u and 1 / v from one reciprocal root.
    root = tl.rsqrt(u * v)
    by_u, by_v = root * root * v, root * root * u
    # q = (a - 2) / u, refined.
    q = (a - 2.0) * by_u
    q = q + by_u * (((q + 1.0) * -2.0 + a) - a * q)
    # v exp(a * a) erfc(a) - 1
    p = 1.31355342e-3 + q * (-1.23075210e-3 + q * -4.01139259e-4)
    p = -5.42046614e-2 + q * (-8.05991981e-3 + q * (8.63227434e-3 + q * p))
    p = -9.27639827e-2 + q * (-1.66031361e-1 + q * (1.64055392e-1 + q * p))
    p = 2.76978403e-1 + q * p
    # (p + 1) / v, refined too.
    y = p * by_v + by_v
    y = y + ((p - y) + (1.0 - (y + y) * a)) * by_v
    # exp(-a * a): adding 1.5 * 2^23 rounds to an integer, whose last bits are then added to the exponent. log2(e) has
    # two parts.
    square = a * a
    shifted = square * -1.4426950216293335 + 12582912.0
    rest = (square * -1.4426950216293335 - (shifted - 12582912.0)) - square * 1.925963033500692e-08
    bits = tl.exp2(rest).to(tl.int32, bitcast=True) + (shifted.to(tl.int32, bitcast=True) << 23)
    y = y * bits.to(tl.float32, bitcast=True)
    # It is below 7e-38 there.
    y = tl.where(a > 9.1, 0.0, y)
    return tl.where(x < 0, 2.0 - y, y)


@triton.jit
def _middle(x, a):
    """fdlibm's erfc from 0.84375 to 1.25."""
    w = a - 1.0
    p = -1.10894694282396677476e-01 + w * (3.54783043256182359371e-02 + w * -2.16637559486879084300e-03)
    p = 4.14856118683748331666e-01 + w * (-3.72207876035701323847e-01 + w * (3.18346619901161753674e-01 + w * p))
    p = -2.36211856075265944077e-03 + w * p
    q = 1.26171219808761642112e-01 + w * (1.36370839120290507362e-02 + w * 1.19844998467991074170e-02)
    q = 5.40397917702171048937e-01 + w * (7.18286544141962662868e-02 + w * q)
    q = 1.0 + w * (1.06420880400844228286e-01 + w * q)
    return tl.where(x >= 0, 1.0 - 8.45062911510467529297e-01 - p / q, 1.0 + (8.45062911510467529297e-01 + p / q))


@triton.jit
def _tail(x, a):
    """fdlibm's erfc from 1.25: exp(-a * a - 0.5625 + p / q) / a, p and q of 1 / (a * a), others from 1 / 0.35."""
    b = tl.where(a < 1.25, 1.25, tl.where(a > 28.0, 28.0, a))
    v = 1.0 / (b * b)
    p = -1.84605092906711035994e02 + v * (-8.12874355063065934246e01 + v * -9.81432934416914548592e00)
    p = -1.05586262253232909814e01 + v * (-6.23753324503260060396e01 + v * (-1.62396669462573470355e02 + v * p))
    p = -9.86494403484714822705e-03 + v * (-6.93858572707181764372e-01 + v * p)
    q = 1.08635005541779435134e02 + v * (6.57024977031928170135e00 + v * -6.04244152148580987438e-02)
    q = 4.34565877475229228821e02 + v * (6.45387271733267880336e02 + v * (4.29008140027567833386e02 + v * q))
    q = 1.0 + v * (1.96512716674392571292e01 + v * (1.37657754143519042600e02 + v * q))
    r = -6.37566443368389627722e02 + v * (-1.02509513161107724954e03 + v * -4.83519191608651397019e02)
    r = -7.99283237680523006574e-01 + v * (-1.77579549177547519889e01 + v * (-1.60636384855821916062e02 + v * r))
    r = -9.86494292470009928597e-03 + v * r
    s = 2.55305040643316442583e03 + v * (4.74528541206955367215e02 + v * -2.24409524465858183362e01)
    s = 3.25792512996573918826e02 + v * (1.53672958608443695994e03 + v * (3.19985821950859553908e03 + v * s))
    s = 1.0 + v * (3.03380607434824582924e01 + v * s)
    fraction = tl.where(b < 2.857142857142857, p / q, r / s)
    # b * b in two parts, of which the first is exact.
    high = b.to(tl.float32).to(tl.float64)
    y = tl.exp(-high * high - 0.5625) * tl.exp((high - b) * (high + b) + fraction) / b
    y = tl.where(a > 27.5, 0.0, y)
    return tl.where(x < 0, 2.0 - y, y)


@triton.jit
def _erfc_64(x):
    a, z = tl.abs(x), x * x
    p = -2.84817495755985104766e-02 + z * (-5.77027029648944159157e-03 + z * -2.37630166566501626084e-05)
    p = 1.28379167095512558561e-01 + z * (-3.25042107247001499370e-01 + z * p)
    q = 5.08130628187576562776e-03 + z * (1.32494738004321644526e-04 + z * -3.96022827877536812320e-06)
    q = 1.0 + z * (3.97917223959155352819e-01 + z * (6.50222499887672944485e-02 + z * q))
    product = x * (p / q)
    small = tl.where(x < 0.25, 1.0 - (x + product), 0.5 - (product + (x - 0.5)))
    y = tl.where(a < 0.84375, small, tl.where(a < 1.25, _middle(x, a), _tail(x, a)))
    return tl.where(x == x, y, x)


@triton.jit
def _erfc_dense(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, eviction_policy="evict_first")
    if x.dtype == tl.float64:
        y = _erfc_64(x)
    elif x.dtype == tl.bfloat16:
        y = _erfc_coarse(x.to(tl.float32))
    else:
        y = _erfc(x.to(tl.float32))
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (128 if n <= 1 << 16 else 2048 if x.dtype == torch.bfloat16 else 1024) if x.is_cuda else 1 << 16
    _erfc_dense[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, num_warps=4)
    return out


def erfc(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    out, x = torch.empty_like(self, dtype=dtype), self
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def erfc_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.contiguous())
    return out.copy_(erfc(self))
