import torch
import triton
import triton.language as tl


@triton.jit
def _acosh16(x):
    # bfloat16 data in float32: log of 2 h, h = (x + sqrt(x^2 - 1)) / 2, by the bits of h
    u = x * 0.5
    h = tl.sqrt(u - 0.5) * tl.sqrt(u + 0.5) + u
    i = h.to(tl.int32, bitcast=True)
    e = (i - 0x3EAAAAAB) & -8388608
    f = (i - e + 0x00800000).to(tl.float32, bitcast=True) - 1.0
    p = -0.1526680886745453
    p = p * f + 0.1699056178331375
    p = p * f - 0.1644081175327301
    p = p * f + 0.19818168878555298
    p = p * f - 0.2500632405281067
    p = p * f + 0.33336734771728516
    p = p * f - 0.49999961256980896
    # the exponent is counted in units of 2^-23
    r = e.to(tl.float32) * 8.262958294867817e-08 + ((f * f) * p + f)
    return tl.where(h < float("inf"), r, h)


@triton.jit
def _acosh32(x):
    # log(1 + u), u = x - 1 + sqrt(x^2 - 1), from u / 16, so that nothing overflows
    t = x - 1.0
    v = tl.where(x > 1.0e9, x, tl.sqrt(t * (x + 1.0)))
    u = t * 0.0625 + v * 0.0625
    i = (u + 0.0625).to(tl.int32, bitcast=True)
    e = (i - 0x3D2AAAAB) & -8388608
    # 16 * 2^-k for the exponent k of 1 + u
    s = (0x41800000 - e).to(tl.float32, bitcast=True)
    f = tl.fma(u, s, tl.fma(s, 0.0625, -1.0))
    p = 0.14026358723640442
    p = p * f - 0.15388548374176025
    p = p * f + 0.13995806872844696
    p = p * f - 0.1641595959663391
    p = p * f + 0.20011168718338013
    p = p * f - 0.2500782012939453
    p = p * f + 0.33333197236061096
    p = p * f - 0.49999937415122986
    r = e.to(tl.float32) * 8.262958294867817e-08 + ((f * f) * p + f)
    # NaN below 1, inf at inf
    return tl.where(t.to(tl.uint32, bitcast=True) < 0x7F800000, r, tl.sqrt(t))


@triton.jit
def _acosh64(x):
    big = x > 1.0e100
    good = x >= 1.0
    xs = tl.where(big, 2.0, tl.where(good, x, 2.0))
    t = xs - 1.0
    u = t + tl.sqrt(t * (xs + 1.0))
    w = 1.0 + u
    c = u - (w - 1.0)
    arg = tl.where(big, x, w)
    ln2 = tl.full(x.shape, 0.6931471805599453, x.dtype)
    extra = tl.where(big, ln2, c / w)
    r = tl.log(arg) + extra
    return tl.where(good, r, float("nan"))


@triton.jit
def _acosh_real(x, KIND: tl.constexpr):
    # KIND 0: bfloat16 data in float32; 1: float32; 2: float64
    if KIND == 0:
        r = _acosh16(x)
    elif KIND == 1:
        r = _acosh32(x)
    else:
        r = _acosh64(x)
    return r


@triton.jit
def _acosh_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * BLOCK
    offs = tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + base + offs, eviction_policy="evict_first")
    else:
        mask = (base + offs) < n
        x = tl.load(x_ptr + base + offs, mask=mask, other=1)
    if KIND == 2:
        xf = x.to(tl.float64)
    else:
        xf = x.to(tl.float32)
    r = _acosh_real(xf, KIND)
    r = r.to(o_ptr.dtype.element_ty)
    if EVEN:
        tl.store(o_ptr + base + offs, r)
    else:
        tl.store(o_ptr + base + offs, r, mask=mask)


@triton.jit
def _acosh_complex_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * BLOCK
    idx = base + tl.arange(0, BLOCK)
    mask = idx < n
    xr = tl.load(x_ptr + 2 * idx, mask=mask, other=0.0)
    xi = tl.load(x_ptr + 2 * idx + 1, mask=mask, other=0.0)
    inf = float("inf")
    if x_ptr.dtype.element_ty == tl.float64:
        ineg = xi.to(tl.int64, bitcast=True) < 0
    else:
        ineg = xi.to(tl.int32, bitcast=True) < 0
    a = xr.to(tl.float64)
    b = tl.abs(xi.to(tl.float64))  # upper half plane, sign put back at the end
    a_inf = tl.abs(a) == inf
    b_inf = b == inf
    any_inf = a_inf | b_inf
    any_nan = (a != a) | (b != b)
    special = any_inf | any_nan
    one = tl.full(a.shape, 1.0, tl.float64)
    zero = tl.full(a.shape, 0.0, tl.float64)
    av = tl.where(special, one, a)
    bv = tl.where(special, one, b)
    # sqrt(z - 1)
    am = av - 1.0
    mm = tl.sqrt(am * am + bv * bv)
    sm = tl.sqrt((mm + tl.abs(am)) * 0.5)
    smd = tl.where(sm > 0.0, sm, one)
    sm_o = bv / (2.0 * smd)
    sm_r = tl.where(am >= 0.0, sm, sm_o)
    sm_i = tl.where(am >= 0.0, sm_o, sm)
    # sqrt(z + 1)
    ap = av + 1.0
    mp = tl.sqrt(ap * ap + bv * bv)
    sp = tl.sqrt((mp + tl.abs(ap)) * 0.5)
    spd = tl.where(sp > 0.0, sp, one)
    sp_o = bv / (2.0 * spd)
    sp_r = tl.where(ap >= 0.0, sp, sp_o)
    sp_i = tl.where(ap >= 0.0, sp_o, sp)
    # real part: asinh(Re(conj(sqrt(z-1)) sqrt(z+1)))
    p = sm_r * sp_r + sm_i * sp_i
    u = p + p * (p / (1.0 + tl.sqrt(1.0 + p * p)))
    w = 1.0 + u
    c = u - (w - 1.0)
    re = tl.log(w) + c / w
    # imaginary part: 2 atan2(Im sqrt(z-1), Re sqrt(z+1)); for infinities atan2 of the signs
    ny = tl.where(special, tl.where(b_inf, one, zero), sm_i)
    nx = tl.where(special, tl.where(a_inf, one, zero), sp_r)
    mx = tl.maximum(ny, nx)
    mn = tl.minimum(ny, nx)
    q = mn / tl.where(mx > 0.0, mx, one)
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
    at = v - v * (z * s)
    at = tl.where(far, at + 0.7853981633974483, at)
    at = tl.where(ny > nx, 1.5707963267948966 - at, at)
    nan = float("nan")
    im_fin = 2.0 * at
    im_inf = tl.where(a < 0.0, 3.141592653589793 - at, at)
    im = tl.where(special, im_inf, im_fin)
    im = tl.where(any_nan, nan, im)
    # +-0 + NaN i has the imaginary part pi/2
    im = tl.where((a == 0.0) & (b != b), 1.5707963267948966, im)
    re = tl.where(any_nan, nan, re)
    re = tl.where(any_inf, inf, re)
    im = tl.where(ineg, -im, im)
    ty = o_ptr.dtype.element_ty
    tl.store(o_ptr + 2 * idx, re.to(ty), mask=mask)
    tl.store(o_ptr + 2 * idx + 1, im.to(ty), mask=mask)


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
    if n == 0:
        return
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    if x.is_complex():
        xr = torch.view_as_real(x)
        orr = torch.view_as_real(out)
        BLOCK = 256
        _acosh_complex_kernel[(triton.cdiv(n, BLOCK),)](xr, orr, n, BLOCK=BLOCK, num_warps=4)
        return
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
    _acosh_kernel[(triton.cdiv(n, BLOCK),)](
        x, out, n, BLOCK=BLOCK, KIND=kind, EVEN=(n % BLOCK == 0), num_warps=4 if few or BLOCK > 256 else 2
    )


def _apply(self, out):
    if self.numel() == 0:
        return out
    x = self
    if x.is_conj() or x.is_neg():
        x = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
    if not (_dense(x) and _dense(out) and _same_layout(x, out)):
        if x.is_contiguous():
            xc = x
        else:
            xc = torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)
        if out.is_contiguous():
            _run(xc, out)
        else:
            tmp = torch.empty(out.shape, dtype=out.dtype, device=out.device)
            _run(xc, tmp)
            out.copy_(tmp)
        return out
    _run(x, out)
    return out


def acosh(self):
    dt = self.dtype
    if not (dt.is_floating_point or dt.is_complex):
        dt = torch.float32
    out = torch.empty_like(self, dtype=dt)
    return _apply(self, out)


def acosh_out(self, *, out):
    return _apply(self, out)

