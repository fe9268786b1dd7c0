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
def _term(x, y, p, PM: tl.constexpr, CX: tl.constexpr, F64: tl.constexpr):
    # 1 |x|, 2 |x|^2, 3 |x|, 0 |x|^p
    if CX:
        if PM == 2:
            t = x * x + y * y
        elif PM == 0:
            # in float64, where squares of float32 neither overflow nor vanish
            t = tl.exp(0.5 * p * tl.log(x * x + y * y))
        else:
            # |x| itself may be in range where its square is not: scaled by a power of two
            a = tl.maximum(tl.abs(x), tl.abs(y))
            if F64:
                HI: tl.constexpr = 2.0 ** 400
                LO: tl.constexpr = 2.0 ** -400
                DN: tl.constexpr = 2.0 ** -600
                UP: tl.constexpr = 2.0 ** 600
                up = tl.full(x.shape, UP, tl.float64)
                dn = tl.full(x.shape, DN, tl.float64)
            else:
                HI: tl.constexpr = 2.0 ** 50
                LO: tl.constexpr = 2.0 ** -50
                DN: tl.constexpr = 2.0 ** -80
                UP: tl.constexpr = 2.0 ** 80
                up = tl.full(x.shape, UP, tl.float32)
                dn = tl.full(x.shape, DN, tl.float32)
            s = tl.where(a > HI, dn, tl.where(a < LO, up, 1.0))
            r = tl.where(a > HI, up, tl.where(a < LO, dn, 1.0))
            u = x * s
            v = y * s
            t = tl.sqrt(u * u + v * v) * r
    else:
        if PM == 2:
            t = x * x
        elif PM == 0:
            t = tl.exp(p * tl.log(tl.abs(x)))
        else:
            t = tl.abs(x)
    return t


@triton.jit
def _to(x, LB: tl.constexpr, F64: tl.constexpr):
    if F64:
        if LB:
            y = _up(x, LB).to(tl.float64)
        else:
            y = x.to(tl.float64)
    else:
        y = _up(x, LB)
    return y


@triton.jit
def _factor(acc, p, mf, mb, PM: tl.constexpr, F64: tl.constexpr, AX: tl.constexpr):
    if PM == 3:
        bad = tl.sum((acc != acc).to(tl.int32), AX) > 0
        nrm = tl.where(bad, float("nan"), tl.max(acc, AX))
    else:
        nrm = tl.sum(acc, AX)
        if PM == 2:
            if F64:
                nrm = tl.sqrt(nrm)
            else:
                # the square root may take subnormal sums for zeros
                nrm = tl.where(nrm < 1e-20, tl.sqrt(nrm * 1099511627776.0) * 9.5367431640625e-07, tl.sqrt(nrm))
        if PM == 0:
            nrm = tl.exp(tl.log(nrm) / p)
    if F64:
        mx = tl.cast(mb, tl.int64).to(tl.float64, bitcast=True)
    else:
        mx = mf
    return tl.where(nrm > mx, mx / (nrm + 1e-7), 1.0)


@triton.jit(do_not_specialize=["SLICES", "mb", "pb", "n1", "n2", "n3", "n4"])
def _ks(x_ptr, o_ptr, SLICES, L, xd, od, n1, n2, n3, n4, x1, x2, x3, x4, xl, o1, o2, o3, o4, ol, mf, mb, pb,
        BM: tl.constexpr, BLOCK: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, PM: tl.constexpr,
        CX: tl.constexpr, F64: tl.constexpr, LB: tl.constexpr, D32: tl.constexpr):
    # BM short slices at once: there may be more than 2**31 of them
    i = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    j = tl.arange(0, BLOCK)
    if BIG:
        j = j.to(tl.int64)
    m = (i < SLICES)[:, None] & (j < L)[None, :]
    p = tl.cast(pb, tl.int64).to(tl.float64, bitcast=True)
    xo = (i * xd)[:, None] + _off(j, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)[None, :]
    oo = (i * od)[:, None] + _off(j, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[None, :]
    x = _to(tl.load(x_ptr + xo, mask=m, other=0), LB, F64)
    if CX:
        y = _to(tl.load(x_ptr + xo + 1, mask=m, other=0), LB, F64)
    else:
        y = x
    acc = tl.where(m, _term(x, y, p, PM, CX, F64), 0.0)
    f = _factor(acc, p, mf, mb, PM, F64, 1)
    z = x * f[:, None]
    if D32:
        z = z.to(tl.float32)
    _st(o_ptr + oo, z, m, LB)
    if CX:
        z = y * f[:, None]
        if D32:
            z = z.to(tl.float32)
        _st(o_ptr + oo + 1, z, m, LB)


@triton.jit(do_not_specialize=["mb", "pb", "n1", "n2", "n3", "n4"])
def _k(x_ptr, o_ptr, L, xd, od, n1, n2, n3, n4, x1, x2, x3, x4, xl, o1, o2, o3, o4, ol, mf, mb, pb,
       BLOCK: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, ONE: tl.constexpr, PM: tl.constexpr,
       CX: tl.constexpr, F64: tl.constexpr, LB: tl.constexpr, D32: tl.constexpr):
    # one slice of L elements
    i = tl.program_id(0).to(tl.int64)
    xb = x_ptr + i * xd
    ob = o_ptr + i * od
    p = tl.cast(pb, tl.int64).to(tl.float64, bitcast=True)
    T = tl.float64 if F64 else tl.float32
    if ONE:
        j = tl.arange(0, BLOCK)
        if BIG:
            j = j.to(tl.int64)
        m = j < L
        xo = _off(j, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
        oo = _off(j, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)
        x = _to(tl.load(xb + xo, mask=m, other=0), LB, F64)
        if CX:
            y = _to(tl.load(xb + xo + 1, mask=m, other=0), LB, F64)
        else:
            y = x
        acc = tl.where(m, _term(x, y, p, PM, CX, F64), 0.0)
        f = _factor(acc, p, mf, mb, PM, F64, 0)
        z = x * f
        if D32:
            z = z.to(tl.float32)
        _st(ob + oo, z, m, LB)
        if CX:
            z = y * f
            if D32:
                z = z.to(tl.float32)
            _st(ob + oo + 1, z, m, LB)
    else:
        acc = tl.zeros([BLOCK], dtype=T)
        for b in range(0, (L - 1) // BLOCK + 1):
            if BIG:
                j = tl.cast(b, tl.int64) * BLOCK + tl.arange(0, BLOCK)
            else:
                j = b * BLOCK + tl.arange(0, BLOCK)
            m = j < L
            xo = _off(j, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
            x = _to(tl.load(xb + xo, mask=m, other=0), LB, F64)
            if CX:
                y = _to(tl.load(xb + xo + 1, mask=m, other=0), LB, F64)
            else:
                y = x
            t = tl.where(m, _term(x, y, p, PM, CX, F64), 0.0)
            if PM == 3:
                acc = tl.where((t > acc) | (t != t), t, acc)
            else:
                acc += t
        f = _factor(acc, p, mf, mb, PM, F64, 0)
        # backwards: what was read last is still in the caches
        nb = (L - 1) // BLOCK
        for q in range(0, nb + 1):
            b = nb - q
            if BIG:
                j = tl.cast(b, tl.int64) * BLOCK + tl.arange(0, BLOCK)
            else:
                j = b * BLOCK + tl.arange(0, BLOCK)
            m = j < L
            xo = _off(j, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
            oo = _off(j, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)
            x = _to(tl.load(xb + xo, mask=m, other=0), LB, F64)
            z = x * f
            if D32:
                z = z.to(tl.float32)
            _st(ob + oo, z, m, LB)
            if CX:
                z = _to(tl.load(xb + xo + 1, mask=m, other=0), LB, F64) * f
                if D32:
                    z = z.to(tl.float32)
                _st(ob + oo + 1, z, m, LB)


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


def _dbits(v):
    return struct.unpack("<q", struct.pack("<d", float(v)))[0]


def _run(x, p, dim, maxnorm, out):
    if out.numel() == 0:
        return out
    dim = dim % x.dim()
    dt = x.dtype
    CX = dt.is_complex
    xs, os_ = list(x.stride()), list(out.stride())
    a, b = x, out
    if CX:
        if x.is_conj():
            x = x.resolve_conj()
            xs = list(x.stride())
        a, b = torch.view_as_real(x), torch.view_as_real(out)
        xs, os_ = [2 * s for s in xs], [2 * s for s in os_]
    others = [i for i in range(x.dim()) if i != dim]
    d = _plan([x.shape[i] for i in others], [[xs[i] for i in others], [os_[i] for i in others]])
    if len(d) > 5:
        # many dimensions that do not merge: through row-major copies
        if not x.is_contiguous():
            return _run(x.contiguous(), p, dim, maxnorm, out)
        tmp = torch.empty(x.shape, dtype=dt, device=x.device)
        _run(x, p, dim, maxnorm, tmp)
        out.copy_(tmp)
        return out
    p = float(p)
    PM = {1.0: 1, 2.0: 2, math.inf: 3}.get(p, 0)
    real64 = dt in (torch.float64, torch.complex128)
    F64 = real64 or PM == 0
    outer = d[::-1]
    nd = len(outer)
    L = 1
    for n, _ in outer:
        L *= n
    sizes = [n for n, _ in outer[:-1]]
    sizes += [1] * (4 - len(sizes))
    st = []
    big = L >= 2 ** 31 - 2 ** 20
    for j in range(2):
        mid = [s[j] for _, s in outer[:-1]]
        mid += [0] * (4 - len(mid))
        st += mid + [outer[-1][1][j]]
        if sum(n * s[j] for n, s in outer) + 16384 * outer[-1][1][j] >= 2 ** 31 - 2 ** 20:
            big = True
    lim = 2048 if F64 else 8192
    BLOCK = min(lim, _np2(L))
    w = 4 if BLOCK <= 2048 else 8
    if L > 8192 and BLOCK == 8192:
        w = 16
    n = x.shape[dim]
    kw = dict(ND=nd, BIG=big, PM=PM, CX=CX, F64=F64, LB=x.device.type == "cpu" and dt == torch.bfloat16,
              D32=F64 and not real64)
    args = (L, xs[dim], os_[dim], *sizes, *st, float(maxnorm), _dbits(maxnorm), _dbits(p))
    if L <= 64:
        BLOCK = _np2(L)
        BM = min(_np2(n), (1024 if F64 else 2048) // BLOCK)
        _ks[(-(-n // BM),)](a, b, n, *args, BM=BM, BLOCK=BLOCK, num_warps=4 if BM * BLOCK >= 128 else 1, **kw)
    else:
        _k[(n,)](a, b, *args, BLOCK=BLOCK, ONE=L <= BLOCK, num_warps=w, **kw)
    return out


def renorm(self, p, dim, maxnorm):
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    return _run(self, p, dim, maxnorm, out)


def renorm_out(self, p, dim, maxnorm, *, out):
    return _run(self, p, dim, maxnorm, out)
