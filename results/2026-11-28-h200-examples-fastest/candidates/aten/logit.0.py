"""logit: log(x / (1 - x)) by the quotient's exponent and a polynomial for its mantissa, x first held between eps and
1 - eps if that is given.

Numbers are float32 inside (float64 for float64) and rounded once. Memory without gaps is read as it lies, whatever the
order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _exponent(q):
    """The bits of q's exponent e alone, such that q / 2^e lies from 2/3 to 4/3."""
    return (q.to(tl.int32, bitcast=True) - 0x3F2AAAAB) & -8388608


@triton.jit
def _log(exponent, f, COARSE: tl.constexpr):
    """Of 2^e (1 + f). The exponent's bits count in units of 2^-23."""
    if COARSE:
        p = 0.19818168878555298 + f * (-0.1644081175327301 + f * (0.1699056178331375 + f * -0.1526680886745453))
        p = -0.49999961256980896 + f * (0.33336734771728516 + f * (-0.2500632405281067 + f * p))
    else:
        p = -0.1641595959663391 + f * (0.13995806872844696 + f * (-0.15388548374176025 + f * 0.14026358723640442))
        p = 0.33333197236061096 + f * (-0.2500782012939453 + f * (0.20011168718338013 + f * p))
        p = -0.49999937415122986 + f * p
    return exponent.to(tl.float32) * 8.262958294867817e-08 + ((f * f) * p + f)


@triton.jit
def _logit_coarse(x):
    """float32, good enough for bfloat16."""
    d = 1.0 - x
    root = tl.rsqrt(d)
    q = (root * root) * x
    exponent = _exponent(q)
    f = (q.to(tl.int32, bitcast=True) - exponent).to(tl.float32, bitcast=True) - 1.0
    # -inf at 0, inf at 1, NaN beyond.
    outside = root - tl.abs(tl.rsqrt(x))
    return tl.where(x * d > 1.17e-38, _log(exponent, f, True), outside)


@triton.jit
def _logit(x):
    """float32. Above 1/2 it is -logit(1 - x), as 1 - x is exact there; the quotient is at most 1."""
    rest = 1.0 - x
    above = x > 0.5
    y = tl.where(above, rest, x)
    d = tl.where(above, x, rest)
    inverse = 1.0 / d
    exponent = _exponent(y * inverse)
    power = (0x3F800000 - exponent).to(tl.float32, bitcast=True)
    # f = (y 2^-e - d) / d, where d = 1 - y.
    f = tl.fma(y, power + 1.0, -1.0) * inverse
    # -inf at 0, NaN beyond.
    log = tl.where(y > 1.17e-38, _log(exponent, f, False), -tl.abs(tl.rsqrt(y)))
    return tl.where(above, -log, log)


@triton.jit
def _logit_64(x):
    middle = (x > 0.25) & (x < 0.75)
    # Here x / (1 - x) = 1 + rest, and log(whole + lost) = log(whole) + lost / whole.
    rest = tl.where(middle, 2.0 * x - 1.0, x) / (1.0 - x)
    whole = tl.where(middle, 1.0 + rest, rest)
    return tl.log(whole) + tl.where(middle, (rest - (whole - 1.0)) / whole, 0.0)


@triton.jit
def _logit_dense(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr, CLAMP: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    i = tl.arange(0, BLOCK)
    inside = None if EVEN else begin + i < n
    loaded = tl.load(x_ptr + begin + i, mask=inside, eviction_policy="evict_first")
    double: tl.constexpr = loaded.dtype == tl.float64
    x = loaded if double else loaded.to(tl.float32)
    if CLAMP:
        low = tl.load(eps) if double else eps
        high = 1.0 - low
        x = tl.where(x < low, low, tl.where(x > high, high, x))
    if double:
        y = _logit_64(x)
    elif loaded.dtype == tl.bfloat16:
        y = _logit_coarse(x)
    else:
        y = _logit(x)
    tl.store(out_ptr + begin + i, y.to(out_ptr.dtype.element_ty), mask=inside)


def _fill(out, x, eps):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    clamp = eps is not None and not eps < 0
    eps = float(eps) if clamp else 0.0
    if clamp and x.dtype == torch.float64:
        # As a number a kernel would take it in float32.
        eps = torch.full((), eps, dtype=torch.float64, device=x.device)
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (128 if n <= 1 << 16 else 2048 if x.dtype == torch.bfloat16 else 1024) if x.is_cuda else 1 << 16
    _logit_dense[(triton.cdiv(n, block),)](x, out, n, eps, BLOCK=block, CLAMP=clamp, EVEN=n % block == 0, num_warps=4)
    return out


def logit(self, eps=None):
    """A new tensor of the input's shape in its floating dtype, or in float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    out, x = torch.empty_like(self, dtype=dtype), self
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x, eps)


def logit_out(self, eps=None, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.contiguous(), eps)
    return out.copy_(logit(self, eps))
