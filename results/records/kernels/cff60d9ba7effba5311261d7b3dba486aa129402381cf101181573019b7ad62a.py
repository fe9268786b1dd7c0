import torch
import triton
import triton.language as tl


@triton.jit
def _off(r, ND: tl.constexpr, n1, n2, n3, n4, s1, s2, s3, s4, sl):
    # offset of position r in ND dimensions; n1 is the innermost size, sl the outermost stride
    t = r
    o = r * 0
    if ND > 1:
        q = t // n1
        o = o + (t - q * n1) * s1
        t = q
    if ND > 2:
        q = t // n2
        o = o + (t - q * n2) * s2
        t = q
    if ND > 3:
        q = t // n3
        o = o + (t - q * n3) * s3
        t = q
    if ND > 4:
        q = t // n4
        o = o + (t - q * n4) * s4
        t = q
    return o + t * sl


@triton.jit
def _up(x, LB: tl.constexpr):
    # any real number to float32
    if LB:
        y = (x.to(tl.int16, bitcast=True).to(tl.int32) << 16).to(tl.float32, bitcast=True)
    else:
        y = x.to(tl.float32)
    return y


@triton.jit
def _st(p, y, m, SB: tl.constexpr):
    # store, rounded to the pointer's dtype
    if SB:
        u = y.to(tl.float32).to(tl.int32, bitcast=True)
        u = u + 0x7FFF + ((u >> 16) & 1)
        h = (u >> 16).to(tl.int16)
        h = tl.where(y == y, h, 0x7FC0)
        tl.store(p, h.to(tl.bfloat16, bitcast=True), mask=m)
    else:
        tl.store(p, y.to(p.dtype.element_ty), mask=m)


@triton.jit
def _near(x):
    # for |x| up to 24000: x / pi rounded by adding 1.5 * 2^23, whose last bit then holds the sign
    t = x * 0.3183098861837907 + 12582912.0
    q = t.to(tl.int32, bitcast=True)
    n = t - 12582912.0
    # reduction by pi in three parts, whose products with n are exact (n below 2^13)
    r = x - n * 3.140625
    r = r - n * 9.67502593994140625e-4
    r = r - n * 1.509957990978376e-7
    z = r * r
    p = z * 2.5980543367230444e-6 + -1.9805710625286576e-4
    p = z * p + 8.333004779562595e-3
    p = z * p + -1.6666656586621204e-1
    # a product, so that the sign of zero stays
    v = r * (z * p + 1.0)
    return (v.to(tl.int32, bitcast=True) ^ (q << 31)).to(tl.float32, bitcast=True)


@triton.jit
def _op(x):
    # infinities, NaN and large numbers make the sum of squares large or NaN
    if tl.sum(x * x) <= 5.76e8:
        y = _near(x)
    else:
        y = tl.sin(x)
    return y


@triton.jit
def _op64(x):
    return tl.where(x == 0, x, tl.sin(x))


@triton.jit
def _opc(xs, ys):
    x = xs.to(tl.float64)
    y0 = ys.to(tl.float64)
    y = tl.where(y0 > 705.0, 705.0, tl.where(y0 < -705.0, -705.0, y0))
    e = tl.exp(y)
    ei = tl.exp(-y)
    ch = 0.5 * (e + ei)
    y2 = y * y
    sm = y + y * y2 * (1.6666666666666666e-1 + y2 * (8.333333333333333e-3 + y2 * (1.984126984126984e-4
         + y2 * 2.7557319223985893e-6)))
    sh = tl.where(tl.abs(y) < 0.3, sm, 0.5 * (e - ei))
    sx = tl.sin(x)
    cx = tl.cos(x)
    re = sx * ch
    im = cx * sh
    return re, im


@triton.jit
def _f(x, F64: tl.constexpr, LB: tl.constexpr):
    if F64:
        y = _op64(x.to(tl.float64))
    else:
        y = _op(_up(x, LB))
    return y


@triton.jit
def _k_flat(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, F64: tl.constexpr,
            LB: tl.constexpr, SB: tl.constexpr):
    # the block's place is added to the pointers once, the rest counts in 32 bits
    base = tl.program_id(0).to(tl.int64) * BLOCK
    c = tl.arange(0, BLOCK)
    m = c < n - base
    if EVEN:
        x = tl.load(x_ptr + base + c, eviction_policy="evict_first")
    else:
        x = tl.load(x_ptr + base + c, mask=m, other=0, eviction_policy="evict_first")
    y = _f(x, F64, LB)
    if EVEN and not SB:
        tl.store(o_ptr + base + c, y.to(o_ptr.dtype.element_ty))
    else:
        _st(o_ptr + base + c, y, m, SB)


@triton.jit(do_not_specialize=["M", "NB", "n1", "n2", "n3", "n4"])
def _k_gen(x_ptr, o_ptr, M, N, NB, n1, n2, n3, n4, x0, x1, x2, x3, x4, xl, o0, o1, o2, o3, o4, ol,
           BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr,
           F64: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    pm = pid // NB
    r = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NB) * BN + tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    xo = _off(r, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)[:, None] + (c * x0)[None, :]
    oo = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[:, None] + (c * o0)[None, :]
    x = tl.load(x_ptr + xo, mask=m, other=0)
    _st(o_ptr + oo, _f(x, F64, LB), m, SB)

 
@triton.jit(do_not_specialize=["M", "NB", "n1", "n2", "n3", "n4"])
def _k_cpx(x_ptr, o_ptr, M, N, NB, n1, n2, n3, n4, x0, x1, x2, x3, x4, xl, o0, o1, o2, o3, o4, ol,
           BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    pm = pid // NB
    r = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NB) * BN + tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    xo = _off(r, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)[:, None] + (c * x0)[None, :]
    oo = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[:, None] + (c * o0)[None, :]
    x = tl.load(x_ptr + xo, mask=m, other=0)
    y = tl.load(x_ptr + xo + 1, mask=m, other=0)
    re, im = _opc(x, y)
    tl.store(o_ptr + oo, re.to(o_ptr.dtype.element_ty), mask=m)
    tl.store(o_ptr + oo + 1, im.to(o_ptr.dtype.element_ty), mask=m)


def _np2(n):
    return 1 << max(0, int(n) - 1).bit_length()


def _plan(shape, strides):
    # dimensions of size 1 dropped, ordered by the last operand's strides, merged where all operands allow it
    k = len(strides)
    dims = [(int(n), [int(s[i]) for s in strides]) for i, n in enumerate(shape) if n != 1]
    dims.sort(key=lambda d: -d[1][-1])
    res = []
    for n, st in dims:
        if res and all(res[-1][1][j] == st[j] * n for j in range(k)):
            res[-1] = (res[-1][0] * n, st)
        else:
            res.append((n, st))
    return res if res else [(1, [1] * k)]


def _flat(d):
    return len(d) == 1 and all(s == 1 for s in d[0][1])


def _launch(kern, ts, d, args, kw, total=2048, warps=4, big=False):
    # a kernel over tiles of rows (outer dimensions) and columns (the innermost one)
    if len(d) > 6:
        n, st = d[0]
        for i in range(n):
            sub = [t.as_strided((1,), (1,), t.storage_offset() + i * s) for t, s in zip(ts, st)]
            _launch(kern, sub, d[1:], args, kw, total, warps, big)
        return
    k = len(ts)
    N, s0 = d[-1]
    outer = d[:-1][::-1]
    nd = len(outer)
    M = 1
    for n, _ in outer:
        M *= n
    sizes = [n for n, _ in outer[:-1]]
    sizes += [1] * (4 - len(sizes))
    st = []
    for j in range(k):
        mid = [s[j] for _, s in outer[:-1]]
        mid += [0] * (4 - len(mid))
        st += [s0[j]] + mid + [outer[-1][1][j] if nd else 0]
        if sum((n - 1) * s[j] for n, s in d) >= 2 ** 31 - 2 ** 22:
            big = True
    BN = min(_np2(N), 1024)
    if N > 128 and N % BN:
        b = N & -N
        if b >= 128:
            BN = min(b, 1024)
    BM = min(_np2(M), max(1, total // BN))
    NB = -(-N // BN)
    if M * N >= 2 ** 31 - 2 ** 22:
        big = True
    kern[(-(-M // BM) * NB,)](*ts, M, N, NB, *sizes, *st, *args,
                              BM=BM, BN=BN, ND=nd, BIG=big, num_warps=warps, **kw)


def _run(x, out):
    n = out.numel()
    if n == 0:
        return out
    if x.dtype.is_complex:
        if x.is_conj():
            x = x.resolve_conj()
        xr, orr = torch.view_as_real(x), torch.view_as_real(out)
        d = _plan(out.shape, [xr.stride()[:-1], orr.stride()[:-1]])
        _launch(_k_cpx, [xr, orr], d, [], {}, total=512)
        return out
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    cpu = x.device.type == "cpu"
    bf = torch.bfloat16
    kw = dict(F64=out.dtype == torch.float64, LB=cpu and x.dtype == bf, SB=cpu and out.dtype == bf)
    d = _plan(out.shape, [x.stride(), out.stride()])
    if _flat(d):
        BLOCK, warps = (2048 if x.element_size() <= 2 else 1024), 4
        if n <= 131072:
            BLOCK, warps = 256, 2
        _k_flat[(-(-n // BLOCK),)](x, out, n, BLOCK=BLOCK, EVEN=n % BLOCK == 0, num_warps=warps, **kw)
    else:
        _launch(_k_gen, [x, out], d, [], kw)
    return out


def _new(x):
    dt = x.dtype if (x.dtype.is_floating_point or x.dtype.is_complex) else torch.float32
    return torch.empty(x.shape, dtype=dt, device=x.device)


def sin(self):
    return _run(self, _new(self))


