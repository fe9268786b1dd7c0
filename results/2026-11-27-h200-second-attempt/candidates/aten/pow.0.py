import math
import struct

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
def _hi32(v):
    # the upper 12 bits of the significand
    return (v.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)


@triton.jit
def _hi64(v):
    return (v.to(tl.int64, bitcast=True) & -134217728).to(tl.float64, bitcast=True)


@triton.jit
def _exp2p(f):
    # 2^f for |f| up to about 0.5
    return 1.0 + f * (0.6931471805599453 + f * (0.2402265069591007 + f * (0.05550410866482158
        + f * (0.009618129107628477 + f * (0.0013333558146428443 + f * (0.00015403530393381608
        + f * 1.525273380405984e-05))))))


@triton.jit
def _scale32(p, n):
    k = n.to(tl.int32)
    h = k >> 1
    s1 = ((h + 127) << 23).to(tl.float32, bitcast=True)
    s2 = ((k - h + 127) << 23).to(tl.float32, bitcast=True)
    return (p * s1) * s2


@triton.jit
def _edges(r, x, y, ax):
    half = y * 0.5
    whole = tl.floor(y) == y
    odd = whole & (tl.floor(half) != half)
    INF = float("inf")
    r = tl.where(ax == 0, tl.where(y < 0, INF, 0.0), r)
    r = tl.where(ax == INF, tl.where(y < 0, 0.0, INF), r)
    return r, whole, odd


@triton.jit
def _pow32(x, y):
    # logarithm and product in two parts of float32, after the way of fdlibm's powf
    ax = tl.abs(x)
    sub = ax < 1.1754943508222875e-38
    ib = tl.where(sub, ax * 16777216.0, ax).to(tl.int32, bitcast=True)
    k = (ib - 0x3F3504F3) >> 23
    m = (ib - (k << 23)).to(tl.float32, bitcast=True)
    e = k.to(tl.float32) - tl.where(sub, 24.0, 0.0)
    u = m - 1.0
    d = m + 1.0
    v = 1.0 / d
    s = u * v
    sh = _hi32(s)
    th = _hi32(d)
    tlo = m - (th - 1.0)
    sl = v * ((u - sh * th) - sh * tlo)
    z = s * s
    r = z * z * (0.6 + z * (0.42857142857142855 + z * (0.3333333333333333 + z * (0.2727272727272727
        + z * (0.23076923076923078 + z * 0.2)))))
    r = r + sl * (sh + s)
    z = sh * sh
    th = _hi32((3.0 + z) + r)
    tlo = r - ((th - 3.0) - z)
    u = sh * th
    v = sl * th + tlo * s
    ph = _hi32(u + v)
    plo = v - (ph - u)
    zh = 0.9619140625 * ph
    zl = -1.1736857402e-04 * ph + plo * 0.9617966939259756
    t1 = _hi32((zh + zl) + e)
    t2 = zl - ((t1 - e) - zh)
    yc = tl.where(y > 2147483648.0, 2147483648.0, tl.where(y < -2147483648.0, -2147483648.0, y))
    y1 = _hi32(yc)
    plo = (yc - y1) * t1 + yc * t2
    ph = y1 * t1
    w = ph + plo
    over = w > 200.0
    under = w < -200.0
    ph = tl.where(over, 200.0, tl.where(under, -200.0, ph))
    plo = tl.where(over | under, 0.0, plo)
    n = tl.floor((ph + plo) + 0.5)
    f = (ph - n) + plo
    r = _scale32(_exp2p(f), n)
    # edges
    r, whole, odd = _edges(r, x, y, ax)
    neg = x.to(tl.int32, bitcast=True) < 0
    r = tl.where(neg & odd, -r, r)
    r = tl.where((x < 0) & (ax < float("inf")) & (whole == 0), float("nan"), r)
    r = tl.where((x != x) | (y != y), float("nan"), r)
    return tl.where((y == 0) | (x == 1.0), 1.0, r)


@triton.jit
def _pow64(x, y):
    ax = tl.abs(x)
    sub = ax < 2.2250738585072014e-308
    ib = tl.where(sub, ax * 18014398509481984.0, ax).to(tl.int64, bitcast=True)
    k = (ib - 0x3FE6A09E667F3BCD) >> 52
    m = (ib - (k << 52)).to(tl.float64, bitcast=True)
    e = k.to(tl.float64) - tl.where(sub, 54.0, 0.0)
    u = m - 1.0
    d = m + 1.0
    v = 1.0 / d
    s = u * v
    sh = _hi64(s)
    th = _hi64(d)
    tlo = m - (th - 1.0)
    sl = v * ((u - sh * th) - sh * tlo)
    z = s * s
    r = z * z * (0.6 + z * (0.42857142857142855 + z * (0.3333333333333333 + z * (0.2727272727272727 + z * (0.23076923076923078 + z * (0.2 + z * (0.17647058823529413 + z * (0.15789473684210525 + z * (0.14285714285714285 + z * (0.13043478260869565 + z * (0.12 + z * (0.1111111111111111 + z * (0.10344827586206896)))))))))))))
    r = r + sl * (sh + s)
    z = sh * sh
    th = _hi64((3.0 + z) + r)
    tlo = r - ((th - 3.0) - z)
    u = sh * th
    v = sl * th + tlo * s
    ph = _hi64(u + v)
    plo = v - (ph - u)
    zh = 9.61796700954437255859e-01 * ph
    zl = -7.02846165095275826516e-09 * ph + plo * 9.61796693925975554329e-01
    t1 = _hi64((zh + zl) + e)
    t2 = zl - ((t1 - e) - zh)
    yc = tl.where(y > 9223372036854775808.0, 9223372036854775808.0,
                  tl.where(y < -9223372036854775808.0, -9223372036854775808.0, y))
    y1 = _hi64(yc)
    plo = (yc - y1) * t1 + yc * t2
    ph = y1 * t1
    w = ph + plo
    over = w > 1200.0
    under = w < -1200.0
    ph = tl.where(over, 1200.0, tl.where(under, -1200.0, ph))
    plo = tl.where(over | under, 0.0, plo)
    n = tl.floor((ph + plo) + 0.5)
    f = (ph - n) + plo
    kk = n.to(tl.int64)
    h = kk >> 1
    s1 = ((h + 1023) << 52).to(tl.float64, bitcast=True)
    s2 = ((kk - h + 1023) << 52).to(tl.float64, bitcast=True)
    r = (tl.exp2(f) * s1) * s2
    r, whole, odd = _edges(r, x, y, ax)
    neg = x.to(tl.int64, bitcast=True) < 0
    r = tl.where(neg & odd, -r, r)
    r = tl.where((x < 0) & (ax < float("inf")) & (whole == 0), float("nan"), r)
    r = tl.where((x != x) | (y != y), float("nan"), r)
    return tl.where((y == 0) | (x == 1.0), 1.0, r)


@triton.jit
def _powi(x, e):
    # by squaring, modulo 2^64
    r = x * 0 + 1
    b = x
    for _ in range(63):
        r = tl.where((e & 1) == 1, r * b, r)
        b = b * b
        e = e >> 1
    return r


@triton.jit
def _two(y):
    # 2^y in float32
    yc = tl.where(y > 200.0, 200.0, tl.where(y < -200.0, -200.0, y))
    n = tl.floor(yc + 0.5)
    r = _scale32(_exp2p(yc - n), n)
    return tl.where(y == y, r, y)


@triton.jit
def _op(a, b, s, CM: tl.constexpr, V: tl.constexpr):
    if CM == 0:
        y = _pow32(a, b)
    elif CM == 1:
        y = _pow64(a, b)
    else:
        y = _powi(a, b)
    return y


@triton.jit
def _fill(a, s, CM: tl.constexpr):
    # not by adding it to zeros: -0 has to keep its sign
    if CM == 0:
        b = tl.full(a.shape, s, tl.float32)
    elif CM == 1:
        b = tl.full(a.shape, s, tl.float64)
    else:
        b = tl.full(a.shape, s, tl.int64)
    return b


@triton.jit
def _op_s(a, s, CM: tl.constexpr, V: tl.constexpr):
    if V == 1:
        y = a
    elif V == 2:
        y = a * a
    elif V == 3:
        y = a * a * a
    else:
        y = _op(a, _fill(a, s, CM), s, CM, V)
    return y


@triton.jit
def _op_r(a, s, CM: tl.constexpr, V: tl.constexpr):
    if V == 2:
        y = _two(a)
    else:
        y = _op(_fill(a, s, CM), a, s, CM, V)
    return y


@triton.jit
def _cv(x, CM: tl.constexpr, LB: tl.constexpr):
    # to the arithmetic's type: 0 float32, 1 float64, 2 int64
    if CM == 0:
        y = _up(x, LB)
    elif CM == 1:
        if LB:
            y = _up(x, LB).to(tl.float64)
        else:
            y = x.to(tl.float64)
    else:
        y = x.to(tl.int64)
    return y


@triton.jit
def _num(si, CM: tl.constexpr):
    # a Python number, which comes as bits, in the arithmetic's type
    if CM == 0:
        v = tl.cast(si, tl.int32).to(tl.float32, bitcast=True)
    elif CM == 1:
        v = tl.cast(si, tl.int64).to(tl.float64, bitcast=True)
    else:
        v = tl.cast(si, tl.int64)
    return v


@triton.jit
def _fin(p, y, m, CM: tl.constexpr, SB: tl.constexpr, D32: tl.constexpr, BO: tl.constexpr):
    if BO:
        tl.store(p, (y != 0).to(tl.uint8), mask=m)
    elif CM == 2:
        tl.store(p, y.to(p.dtype.element_ty), mask=m)
    elif D32:
        _st(p, y.to(tl.float32), m, SB)
    else:
        _st(p, y, m, SB)


@triton.jit
def _calc(a, b, si, CM: tl.constexpr, BS: tl.constexpr, LA: tl.constexpr, LB: tl.constexpr, V: tl.constexpr):
    s = _num(si, CM)
    x = _cv(a, CM, LA)
    if BS == 1:
        y = _op_s(x, s, CM, V)
    elif BS == 2:
        y = _op_r(x, s, CM, V)
    else:
        y = _op(x, _cv(b, CM, LB), s, CM, V)
    return y


@triton.jit(do_not_specialize=["si"])
def _k_flat(a_ptr, b_ptr, o_ptr, n, si, BLOCK: tl.constexpr, BIG: tl.constexpr, CM: tl.constexpr,
            BS: tl.constexpr, LA: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr, D32: tl.constexpr,
            BO: tl.constexpr, V: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(a_ptr + i, mask=m, other=0)
    if BS == 0:
        b = tl.load(b_ptr + i, mask=m, other=1)
    else:
        b = a
    _fin(o_ptr + i, _calc(a, b, si, CM, BS, LA, LB, V), m, CM, SB, D32, BO)


@triton.jit(do_not_specialize=["M", "NB", "n1", "n2", "n3", "n4", "si"])
def _k_gen(a_ptr, b_ptr, o_ptr, M, N, NB, n1, n2, n3, n4,
           a0, a1, a2, a3, a4, al, b0, b1, b2, b3, b4, bl, o0, o1, o2, o3, o4, ol,
           si, BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, CM: tl.constexpr,
           BS: tl.constexpr, LA: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr, D32: tl.constexpr,
           BO: tl.constexpr, V: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    pm = pid // NB
    r = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NB) * BN + tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    ao = _off(r, ND, n1, n2, n3, n4, a1, a2, a3, a4, al)[:, None] + (c * a0)[None, :]
    bo = _off(r, ND, n1, n2, n3, n4, b1, b2, b3, b4, bl)[:, None] + (c * b0)[None, :]
    oo = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[:, None] + (c * o0)[None, :]
    a = tl.load(a_ptr + ao, mask=m, other=0)
    if BS == 0:
        b = tl.load(b_ptr + bo, mask=m, other=1)
    else:
        b = a
    _fin(o_ptr + oo, _calc(a, b, si, CM, BS, LA, LB, V), m, CM, SB, D32, BO)


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


def _dbits(v):
    return struct.unpack("<q", struct.pack("<d", float(v)))[0]


def _fbits(v):
    # the bits of a number rounded to float32
    v = float(v)
    try:
        b = struct.pack("<f", v)
    except OverflowError:
        b = struct.pack("<f", math.copysign(math.inf, v))
    return struct.unpack("<i", b)[0]


def _wrap64(v):
    v = int(v) & 0xFFFFFFFFFFFFFFFF
    return v - (1 << 64) if v >= (1 << 63) else v


def _cat(d):
    if d == torch.bool:
        return 0
    if d.is_complex:
        return 3
    return 2 if d.is_floating_point else 1


def _prom(a, b):
    if a is None:
        return b
    if b is None or a == b:
        return a
    ca, cb = _cat(a), _cat(b)
    if ca == 3 or cb == 3:
        if torch.float64 in (a, b) or torch.complex128 in (a, b):
            return torch.complex128
        return torch.complex64
    if ca == 2 or cb == 2:
        if ca != cb:
            return a if ca > cb else b
        if a.itemsize == b.itemsize:
            return torch.float32
        return a if a.itemsize > b.itemsize else b
    if ca == 0:
        return b
    if cb == 0:
        return a
    if torch.uint8 in (a, b):
        o = b if a == torch.uint8 else a
        return torch.int16 if o == torch.int8 else o
    return a if a.itemsize > b.itemsize else b


def _comb(h, l):
    if h is None:
        return l
    if l is None:
        return h
    ch, cl = _cat(h), _cat(l)
    if ch == 3:
        return h
    if ch == 2:
        if cl == 3:
            return torch.complex128 if h == torch.float64 else torch.complex64
        return h
    if ch == 0 or cl >= 2:
        return _prom(h, l)
    return h


def _rt(*xs):
    # torch.result_type
    dim = zero = num = None
    for x in xs:
        if isinstance(x, torch.Tensor):
            if x.dim() > 0:
                dim = _prom(dim, x.dtype)
            else:
                zero = _prom(zero, x.dtype)
        elif isinstance(x, bool):
            num = _prom(num, torch.bool)
        elif isinstance(x, int):
            num = _prom(num, torch.int64)
        elif isinstance(x, complex):
            num = _prom(num, torch.complex64)
        else:
            num = _prom(num, torch.float32)
    return _comb(dim, _comb(zero, num))


def _bshape(*shapes):
    n = max(len(s) for s in shapes)
    r = [1] * n
    for s in shapes:
        for i, v in enumerate(s):
            if v != 1:
                r[n - len(s) + i] = int(v)
    return r


def _bstr(t, shape):
    # strides of t broadcast to shape
    k = len(shape) - t.dim()
    return [0] * k + [0 if t.shape[i] == 1 else t.stride(i) for i in range(t.dim())]


def _u8(t):
    return t.view(torch.uint8) if t.dtype == torch.bool else t


def _mode(ct):
    return 1 if ct == torch.float64 else (0 if ct.is_floating_point else 2)


def _run(a, b, out, s, BS, ct, V=0):
    # BS 0: a and b are tensors, s a number beside; 1: b is the number s; 2: the tensor is a, the first operand s
    n = out.numel()
    if n == 0:
        return out
    CM = _mode(ct)
    cpu = out.device.type == "cpu"
    bf = torch.bfloat16
    if CM == 0:
        si = _fbits(s)
    elif CM == 1:
        si = _dbits(s)
    else:
        si = _wrap64(s)
    kw = dict(CM=CM, BS=BS, LA=cpu and a.dtype == bf, LB=cpu and b.dtype == bf, SB=cpu and out.dtype == bf,
              D32=CM == 1 and out.dtype != torch.float64, BO=out.dtype == torch.bool, V=V)
    shape = out.shape
    ts = [_u8(a), _u8(b), _u8(out)]
    d = _plan(shape, [_bstr(a, shape), _bstr(b, shape), out.stride()])
    if _flat(d):
        BLOCK = 1024
        _k_flat[(-(-n // BLOCK),)](*ts, n, si, BLOCK=BLOCK, BIG=n >= 2 ** 31 - 2 ** 20, num_warps=4, **kw)
    else:
        _launch(_k_gen, ts, d, [si], kw)
    return out


def pow_Tensor_Tensor(self, exponent):
    ct = _rt(self, exponent)
    out = torch.empty(_bshape(self.shape, exponent.shape), dtype=ct, device=self.device)
    return _run(self, exponent, out, 0, 0, ct)


def pow_Tensor_Tensor_out(self, exponent, *, out):
    return _run(self, exponent, out, 0, 0, _rt(self, exponent))


def pow_Tensor_Scalar(self, exponent):
    ct = _rt(self, exponent)
    out = torch.empty(self.shape, dtype=ct, device=self.device)
    V = 0
    for k in (1, 2, 3):
        if exponent == k:
            V = k
    return _run(self, self, out, exponent, 1, ct, V=V)


def pow_Scalar(self, exponent):
    ct = _rt(self, exponent)
    out = torch.empty(exponent.shape, dtype=ct, device=exponent.device)
    V = 2 if (self == 2 and ct.is_floating_point and ct != torch.float64) else 0
    return _run(exponent, exponent, out, self, 2, ct, V=V)

