import torch
import triton
import triton.language as tl


@triton.jit
def _lg(x, TINY: tl.constexpr):
    # log10 of float32 numbers: 2^e (1 + f), with 1 + f from sqrt(1/2) to sqrt(2), and a polynomial in f
    u = x
    if TINY:
        g = tl.where(x < 1.1754943508222875e-38, 8388608.0, 1.0)
        u = x * g
    b = u.to(tl.int32, bitcast=True)
    h = (b - 0x3F3504F3) & -8388608
    f = (b - h).to(tl.float32, bitcast=True) - 1.0
    if TINY:
        # the bits of g / 1.0
        h = h - (g.to(tl.int32, bitcast=True) - 0x3F800000)
    p = f * 0.037880595670365586 + -0.062394315051905416
    p = p * f + 0.06493686874341126
    p = p * f + -0.07192957262340503
    p = p * f + 0.08667142854332421
    p = p * f + -0.10858262755414014
    p = p * f + 0.14476852869406392
    p = p * f + -0.21714718868321736
    p = p * f + 0.43429447069411475
    # h is e * 2^23
    y = h.to(tl.float32) * 3.588557191657796e-08 + p * f
    # inf and NaN; 0 and what is below
    k = x.to(tl.int32, bitcast=True)
    y = tl.where(k < 0x7F800000, y, x)
    return tl.where(k > 0, y, tl.where(x == 0.0, float("-inf"), float("nan")))


@triton.jit
def _log10_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr):
    # KIND 0: denormal float32 numbers do not come; 1: they may; 2: float64
    base = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + base + offs, eviction_policy="evict_first")
    else:
        mask = (base + offs) < n
        x = tl.load(x_ptr + base + offs, mask=mask, other=1, eviction_policy="evict_first")
    if KIND == 2:
        r = tl.log(x.to(tl.float64)) * 0.43429448190325182765
    else:
        r = _lg(x.to(tl.float32), KIND == 1)
    r = r.to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + base + offs, r)
    else:
        tl.store(o_ptr + base + offs, r, mask=mask)


@triton.jit
def _log10_complex_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    idx = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = idx < n
    xr = tl.load(x_ptr + 2 * idx, mask=mask, other=1.0)
    xi = tl.load(x_ptr + 2 * idx + 1, mask=mask, other=0.0)
    inf = float("inf")
    nan = float("nan")
    if x_ptr.dtype.element_ty == tl.float64:
        rneg = xr.to(tl.int64, bitcast=True) < 0
        ineg = xi.to(tl.int64, bitcast=True) < 0
    else:
        rneg = xr.to(tl.int32, bitcast=True) < 0
        ineg = xi.to(tl.int32, bitcast=True) < 0
    a = tl.abs(xr.to(tl.float64))
    b = tl.abs(xi.to(tl.float64))
    any_inf = (a == inf) | (b == inf)
    any_nan = (a != a) | (b != b)
    one = tl.full(a.shape, 1.0, tl.float64)
    zero = tl.full(a.shape, 0.0, tl.float64)
    special = any_inf | any_nan
    av = tl.where(special, tl.where(a == inf, one, zero), a)
    bv = tl.where(special, tl.where(b == inf, one, zero), b)
    swap = bv > av
    mx = tl.where(swap, bv, av)
    mn = tl.where(swap, av, bv)
    # the modulus
    s = mx * mx + mn * mn
    near = (s > 0.5) & (s < 2.0)
    d = tl.where(near, (mx - 1.0) * (mx + 1.0) + mn * mn, zero)
    w = 1.0 + d
    c = d - (w - 1.0)
    l = tl.where(near, tl.log(w) + c / w, tl.log(tl.where(near, one, s)))
    re = l * 0.21714724095162590
    re = tl.where(any_nan, nan, re)
    re = tl.where(any_inf, inf, re)
    # the angle
    q = mn / tl.where(mx > 0.0, mx, one)
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
    at = v - v * (z * t)
    at = tl.where(far, at + 0.78539816339744831, at)
    at = tl.where(swap, 1.5707963267948966 - at, at)
    at = tl.where(rneg, 3.141592653589793 - at, at)
    at = at * 0.43429448190325182765
    at = tl.where(any_nan, nan, at)
    at = tl.where(ineg, -at, at)
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + 2 * idx, re.to(ty), mask=mask)
    tl.store(o_ptr + 2 * idx + 1, at.to(ty), mask=mask)


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


def _run(x, out):
    n = x.numel()
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    if x.is_complex():
        _log10_complex_kernel[(triton.cdiv(n, 256),)](
            torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=256, num_warps=4
        )
        return
    if x.dtype == torch.float64:
        kind, BLOCK = 2, 512
    elif x.dtype == torch.bfloat16:
        kind, BLOCK = 1, 2048
    elif x.dtype == torch.float32:
        kind, BLOCK = 1, 1024
    elif x.element_size() <= 2:
        kind, BLOCK = 0, 2048
    else:
        kind, BLOCK = 0, 1024
    if n <= 131072:
        BLOCK = 256
    _log10_kernel[(triton.cdiv(n, BLOCK),)](
        x, out, n, BLOCK=BLOCK, KIND=kind, EVEN=(n % BLOCK == 0), num_warps=4 if BLOCK > 256 else 2
    )


def _apply(self, out):
    if self.numel() == 0:
        return out
    x = self
    if x.is_conj() or x.is_neg():
        x = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if _dense(x) and _same_layout(x, out):
        _run(x, out)
        return out
    if not x.is_contiguous():
        x = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if out.is_contiguous():
        _run(x, out)
    else:
        tmp = torch.empty(out.shape, dtype=out.dtype, device=out.device)
        _run(x, tmp)
        out.copy_(tmp)
    return out


def log10(self):
    dt = self.dtype
    if not (dt.is_floating_point or dt.is_complex):
        dt = torch.float32
    out = torch.empty_like(self, dtype=dt)
    return _apply(self, out)


def log10_out(self, *, out):
    return _apply(self, out)

