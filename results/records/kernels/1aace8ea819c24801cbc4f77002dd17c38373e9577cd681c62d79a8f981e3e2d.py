import struct

import torch
import triton
import triton.language as tl


@triton.jit
def _l1p(f, DEG: tl.constexpr):
    # log(1 + f) for f in [-1/3, 1/3]
    if DEG == 6:
        p = -0.1526680886745453
        p = p * f + 0.1699056178331375
        p = p * f - 0.1644081175327301
        p = p * f + 0.19818168878555298
        p = p * f - 0.2500632405281067
        p = p * f + 0.33336734771728516
        p = p * f - 0.49999961256980896
    else:
        p = 0.14026358723640442
        p = p * f - 0.15388548374176025
        p = p * f + 0.13995806872844696
        p = p * f - 0.1641595959663391
        p = p * f + 0.20011168718338013
        p = p * f - 0.2500782012939453
        p = p * f + 0.33333197236061096
        p = p * f - 0.49999937415122986
    return (f * f) * p + f


@triton.jit
def _logit16(x):
    # bfloat16 data in float32
    d = 1.0 - x
    t = tl.rsqrt(d)
    q = (t * t) * x
    i = q.to(tl.int32, bitcast=True)
    e = (i - 0x3F2AAAAB) & -8388608
    f = (i - e).to(tl.float32, bitcast=True) - 1.0
    # the exponent is counted in units of 2^-23
    r = e.to(tl.float32) * 8.262958294867817e-08 + _l1p(f, 6)
    # -inf at 0 and below the normal numbers, inf at 1, NaN beyond
    s = t - tl.abs(tl.rsqrt(x))
    return tl.where(x * d > 1.17e-38, r, s)


@triton.jit
def _logit32(x):
    # -logit(1 - x) where x is above 1/2: 1 - x is exact there, and y / d is at most 1
    d0 = 1.0 - x
    hi = x > 0.5
    y = tl.where(hi, d0, x)
    d = tl.where(hi, x, d0)
    t = 1.0 / d
    i = (y * t).to(tl.int32, bitcast=True)
    e = (i - 0x3F2AAAAB) & -8388608
    # 2^-k for the exponent k of y / d
    p = (0x3F800000 - e).to(tl.float32, bitcast=True)
    # f = (y 2^-k - d) / d with d = 1 - y
    f = tl.fma(y, p + 1.0, -1.0) * t
    r = e.to(tl.float32) * 8.262958294867817e-08 + _l1p(f, 7)
    # -inf at 0 and below the normal numbers, NaN beyond
    r = tl.where(y > 1.17e-38, r, -tl.abs(tl.rsqrt(y)))
    return tl.where(hi, -r, r)


@triton.jit(do_not_specialize=["e0", "eb"])
def _logit_kernel(
    x_ptr, o_ptr, n, e0, eb,
    BLOCK: tl.constexpr, KIND: tl.constexpr, CLAMP: tl.constexpr, EVEN: tl.constexpr,
):
    # KIND 0: bfloat16 data in float32; 1: float32; 2: float64
    base = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + base + offs, eviction_policy="evict_first")
    else:
        mask = (base + offs) < n
        x = tl.load(x_ptr + base + offs, mask=mask, other=0)
    if KIND == 2:
        x = x.to(tl.float64)
    else:
        x = x.to(tl.float32)
    if CLAMP:
        if KIND == 2:
            lo = eb.to(tl.int64).to(tl.float64, bitcast=True)
        else:
            lo = e0.to(tl.float32)
        hi = 1.0 - lo
        x = tl.where(x < lo, lo, tl.where(x > hi, hi, x))
    if KIND == 2:
        mid = (x > 0.25) & (x < 0.75)
        q = tl.where(mid, 2.0 * x - 1.0, x) / (1.0 - x)
        w = tl.where(mid, 1.0 + q, q)
        c = tl.where(mid, (q - (w - 1.0)) / w, 0.0)
        r = tl.log(w) + c
    elif KIND == 1:
        r = _logit32(x)
    else:
        r = _logit16(x)
    r = r.to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + base + offs, r)
    else:
        tl.store(o_ptr + base + offs, r, mask=mask)


def _f32(x):
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def _bits(v):
    # the bits of a double as an integer: a Python float would reach a kernel as float32
    return struct.unpack("<q", struct.pack("<d", v))[0]


def _dense(t):
    dims = sorted((st, sz) for st, sz in zip(t.stride(), t.shape) if sz != 1)
    expect = 1
    for st, sz in dims:
        if st != expect:
            return False
        expect *= sz
    return True


def _same_layout(a, b):
    for sz, x, y in zip(a.shape, a.stride(), b.stride()):
        if sz != 1 and x != y:
            return False
    return True


def _run(x, out, eps):
    n = x.numel()
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    if x.dtype == torch.float64:
        kind, BLOCK = 2, 512
    elif x.dtype == torch.bfloat16:
        kind, BLOCK = 0, 2048
    else:
        kind, BLOCK = 1, 1024
    few = n <= 2 ** 16
    if few:
        BLOCK = 128
    elif n <= 132 * 4 * BLOCK:
        BLOCK = 256
    clamp = eps is not None and not (float(eps) < 0.0)
    e0, eb = (_f32(float(eps)), _bits(float(eps))) if clamp else (0.0, 0)
    _logit_kernel[(triton.cdiv(n, BLOCK),)](
        x, out, n, e0, eb,
        BLOCK=BLOCK, KIND=kind, CLAMP=clamp, EVEN=(n % BLOCK == 0), num_warps=4 if few or BLOCK > 256 else 2,
    )


def _apply(self, eps, out):
    if self.numel() == 0:
        return out
    x = self
    if x.is_neg():
        x = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if _dense(x) and _same_layout(x, out):
        _run(x, out, eps)
        return out
    if not x.is_contiguous():
        x = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if out.is_contiguous():
        _run(x, out, eps)
    else:
        tmp = torch.empty(out.shape, dtype=out.dtype, device=out.device)
        _run(x, tmp, eps)
        out.copy_(tmp)
    return out


def logit(self, eps=None):
    dt = self.dtype
    if not dt.is_floating_point:
        dt = torch.float32
    out = torch.empty_like(self, dtype=dt)
    return _apply(self, eps, out)


def logit_out(self, eps=None, *, out):
    return _apply(self, eps, out)


