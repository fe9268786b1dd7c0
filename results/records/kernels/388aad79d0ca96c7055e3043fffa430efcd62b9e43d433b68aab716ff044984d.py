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


@triton.jit(do_not_specialize=["M", "n1", "n2", "n3", "n4", "pb", "eb"])
def _k(x_ptr, y_ptr, o_ptr, M, D, n1, n2, n3, n4,
       x0, x1, x2, x3, x4, xl, y0, y1, y2, y3, y4, yl, o0, o1, o2, o3, o4, ol,
       ef, eb, pb, BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, PM: tl.constexpr,
       F64: tl.constexpr, LX: tl.constexpr, LY: tl.constexpr, SB: tl.constexpr, O64: tl.constexpr):
    # PM: 1 sum, 2 root of the sum of squares, 3 largest, 4 number of those not 0, 5 smallest, 0 any power
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    r = pid * BM + tl.arange(0, BM)
    rm = r < M
    xr = _off(r, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
    yr = _off(r, ND, n1, n2, n3, n4, y1, y2, y3, y4, yl)
    zr = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)
    T = tl.float64 if F64 else tl.float32
    if F64:
        eps = tl.cast(eb, tl.int64).to(tl.float64, bitcast=True)
    else:
        eps = ef
    p = tl.cast(pb, tl.int64).to(tl.float64, bitcast=True)
    acc = tl.zeros([BM, BN], dtype=T)
    if PM == 5:
        acc = acc + float("inf")
    for j in range(0, (D - 1) // BN + 1):
        c = (pid * 0 + j) * BN + tl.arange(0, BN)
        m = rm[:, None] & (c < D)[None, :]
        x = tl.load(x_ptr + xr[:, None] + (c * x0)[None, :], mask=m, other=0)
        y = tl.load(y_ptr + yr[:, None] + (c * y0)[None, :], mask=m, other=0)
        if F64:
            if LX:
                u = _up(x, LX).to(tl.float64)
            else:
                u = x.to(tl.float64)
            if LY:
                v = _up(y, LY).to(tl.float64)
            else:
                v = y.to(tl.float64)
        else:
            u = _up(x, LX)
            v = _up(y, LY)
        t = (u - v) + eps
        if PM == 1:
            acc += tl.where(m, tl.abs(t), 0.0)
        elif PM == 2:
            acc += tl.where(m, t * t, 0.0)
        elif PM == 3:
            t = tl.where(m, tl.abs(t), 0.0)
            acc = tl.where((t > acc) | (t != t), t, acc)
        elif PM == 4:
            acc += tl.where(m & (t != 0), 1.0, 0.0)
        elif PM == 5:
            t = tl.where(m, tl.abs(t), float("inf"))
            acc = tl.where((t < acc) | (t != t), t, acc)
        else:
            acc += tl.where(m, tl.exp(p * tl.log(tl.abs(t))), 0.0)
    if PM == 3:
        bad = tl.sum((acc != acc).to(tl.int32), 1) > 0
        res = tl.where(bad, float("nan"), tl.max(acc, 1))
    elif PM == 5:
        bad = tl.sum((acc != acc).to(tl.int32), 1) > 0
        res = tl.where(bad, float("nan"), tl.min(acc, 1))
    else:
        res = tl.sum(acc, 1)
        if PM == 2:
            if F64:
                res = tl.sqrt(res)
            else:
                res = tl.sqrt_rn(res)
        if PM == 0:
            res = tl.exp(tl.log(res) / p)
    if O64:
        tl.store(o_ptr + zr, res.to(tl.float64), mask=rm)
    else:
        _st(o_ptr + zr, res.to(tl.float32), rm, SB)


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


def _launch_rows(kern, ts, rows, D, inner, args, kw, BM, BN, warps=4):
    # a kernel over blocks of BM rows; each goes through the D elements of its rows itself
    if len(rows) > 5:
        n, st = rows[0]
        for i in range(n):
            sub = [t.as_strided((1,), (1,), t.storage_offset() + i * s) for t, s in zip(ts, st)]
            _launch_rows(kern, sub, rows[1:], D, inner, args, kw, BM, BN, warps)
        return
    outer = rows[::-1]
    nd = len(outer)
    M = 1
    for n, _ in outer:
        M *= n
    sizes = [n for n, _ in outer[:-1]]
    sizes += [1] * (4 - len(sizes))
    st = []
    big = M >= 2 ** 31 - 2 ** 22
    for j in range(len(ts)):
        mid = [s[j] for _, s in outer[:-1]]
        mid += [0] * (4 - len(mid))
        st += [inner[j]] + mid + [outer[-1][1][j]]
        if sum((n - 1) * s[j] for n, s in outer) + (D + 65536) * inner[j] >= 2 ** 31 - 2 ** 22:
            big = True
    BM = min(BM, _np2(M))
    kern[(-(-M // BM),)](*ts, M, D, *sizes, *st, *args, BM=BM, BN=BN, ND=nd, BIG=big, num_warps=warps, **kw)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    dt = _rt(x1, x2)
    shape = _bshape(x1.shape, x2.shape)
    s1, s2 = _bstr(x1, shape), _bstr(x2, shape)
    scalar = len(shape) == 0
    if scalar:
        shape, s1, s2 = [1], [0], [0]
    D = shape[-1]
    outer = shape[:-1]
    full = ([] if scalar else outer + [1]) if keepdim else outer
    out = torch.empty(full, dtype=dt, device=x1.device)
    if out.numel() == 0:
        return out
    if D == 0:
        out.fill_(0)
        return out
    so = list(out.stride())[:len(outer)]
    p = float(p)
    PM = 0
    if p == 1:
        PM = 1
    elif p == 2:
        PM = 2
    elif p == math.inf:
        PM = 3
    elif p == 0:
        PM = 4
    elif p == -math.inf:
        PM = 5
    cpu = out.device.type == "cpu"
    bf = torch.bfloat16
    rows = _plan(outer, [s1[:-1], s2[:-1], so])
    BN = min(2048, _np2(D))
    if PM == 0:
        BN = min(256, BN)
    tile = 1024 if PM == 0 else 4096
    BM = max(1, tile // BN)
    BM = min(BM, 256)
    _launch_rows(_k, [x1, x2, out], rows, D, [s1[-1], s2[-1], 0], [float(eps), _dbits(eps), _dbits(p)],
                 dict(PM=PM, F64=dt == torch.float64 or PM == 0, LX=cpu and x1.dtype == bf, LY=cpu and x2.dtype == bf,
                      SB=cpu and dt == bf, O64=dt == torch.float64), BM, BN, warps=8 if tile == 4096 else 4)
    return out
