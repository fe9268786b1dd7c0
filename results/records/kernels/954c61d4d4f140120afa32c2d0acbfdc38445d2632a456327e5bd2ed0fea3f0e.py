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
def _in(x, LB: tl.constexpr, CV: tl.constexpr, F64: tl.constexpr):
    # to the wanted dtype (CV: 1 float16, 2 bfloat16) and on to the arithmetic's
    if F64:
        if LB:
            y = _up(x, LB).to(tl.float64)
        else:
            y = x.to(tl.float64)
    else:
        y = _up(x, LB)
        if CV == 1:
            y = y.to(tl.float16).to(tl.float32)
        if CV == 2:
            u = y.to(tl.int32, bitcast=True)
            u = (u + 0x7FFF + ((u >> 16) & 1)) & -65536
            y = tl.where(y == y, u.to(tl.float32, bitcast=True), y)
    return y


@triton.jit
def _exp(v, F64: tl.constexpr):
    # v is not positive, or NaN
    if F64:
        y = tl.exp(v)
    else:
        x = tl.where(v < -104.0, -104.0, v)
        t = x * 1.4426950408889634 + 12582912.0
        n = t - 12582912.0
        f = (x - n * 0.693359375) + n * 2.12194440e-4
        s = ((t.to(tl.int32, bitcast=True) << 23) + 0x5F800000).to(tl.float32, bitcast=True)
        y = (tl.exp2(f * 1.4426950408889634) * s) * 5.421010862427522e-20
    return y


@triton.jit
def _k_row(x_ptr, o_ptr, D, xs, BLOCK: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr, CV: tl.constexpr,
           F64: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    m = i < D
    x = _in(tl.load(x_ptr + r * xs + i, mask=m, other=0), LB, CV, F64)
    x = tl.where(m, x, float("-inf"))
    e = _exp(x - tl.max(x, 0), F64)
    y = e * (1.0 / tl.sum(e, 0))
    _st(o_ptr + r * D + i, y, m, SB)


@triton.jit
def _k_long(x_ptr, o_ptr, D, xs, NCH, BLOCK: tl.constexpr, LB: tl.constexpr, SB: tl.constexpr,
            CV: tl.constexpr, F64: tl.constexpr, MANY: tl.constexpr):
    # MANY: with so many chunks that what each addition loses has to be carried along
    r = tl.program_id(0).to(tl.int64)
    xb = x_ptr + r * xs
    ob = o_ptr + r * D
    T = tl.float64 if F64 else tl.float32
    i = tl.arange(0, BLOCK)
    sv = tl.zeros([BLOCK], dtype=T)
    if MANY:
        lost = tl.zeros([BLOCK], dtype=T)
    mx = tl.max(sv + float("-inf"), 0)
    for k in range(0, NCH):
        j = (r * 0 + k) * BLOCK + i  # in 64 bits
        m = j < D
        x = _in(tl.load(xb + j, mask=m, other=0), LB, CV, F64)
        x = tl.where(m, x, float("-inf"))
        nm = tl.maximum(mx, tl.max(x, 0))
        ref = tl.where(nm == float("-inf"), 0.0, nm).to(T)
        if MANY:
            f = _exp(mx - ref, F64)
            s = sv * f
            e = _exp(x - ref, F64) - lost * f
            sv = s + e
            lost = (sv - s) - e
        else:
            sv = sv * _exp(mx - ref, F64) + _exp(x - ref, F64)
        mx = nm
    ref = tl.where(mx == float("-inf"), 0.0, mx).to(T)
    inv = 1.0 / tl.sum(sv, 0)
    # from behind, where the row is still in the cache
    for q in range(0, NCH):
        j = (r * 0 + NCH - 1 - q) * BLOCK + i
        m = j < D
        x = _in(tl.load(xb + j, mask=m, other=0), LB, CV, F64)
        _st(ob + j, _exp(x - ref, F64) * inv, m, SB)


@triton.jit(do_not_specialize=["M", "n1", "n2", "n3", "n4"])
def _k_gen(x_ptr, o_ptr, M, D, n1, n2, n3, n4, x0, x1, x2, x3, x4, xl, o0, o1, o2, o3, o4, ol,
           BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, LB: tl.constexpr,
           SB: tl.constexpr, CV: tl.constexpr, F64: tl.constexpr):
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    r = pid * BM + tl.arange(0, BM)
    rm = r < M
    xr = _off(r, ND, n1, n2, n3, n4, x1, x2, x3, x4, xl)
    oor = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)
    T = tl.float64 if F64 else tl.float32
    mv = tl.zeros([BM, BN], dtype=T) + float("-inf")
    for k in range(0, D, BN):
        c = k + tl.arange(0, BN)
        if BIG:
            c = c.to(tl.int64)
        m = rm[:, None] & (c < D)[None, :]
        x = _in(tl.load(x_ptr + xr[:, None] + (c * x0)[None, :], mask=m, other=0), LB, CV, F64)
        mv = tl.maximum(mv, tl.where(m, x, float("-inf")))
    mx = tl.max(mv, 1)[:, None]
    sv = tl.zeros([BM, BN], dtype=T)
    lost = tl.zeros([BM, BN], dtype=T)  # what the additions have rounded up so far
    for k in range(0, D, BN):
        c = k + tl.arange(0, BN)
        if BIG:
            c = c.to(tl.int64)
        m = rm[:, None] & (c < D)[None, :]
        x = _in(tl.load(x_ptr + xr[:, None] + (c * x0)[None, :], mask=m, other=0), LB, CV, F64)
        e = _exp(tl.where(m, x, float("-inf")) - mx, F64) - lost
        s = sv + e
        lost = (s - sv) - e
        sv = s
    inv = 1.0 / tl.sum(sv, 1)[:, None]
    for k in range(0, D, BN):
        c = k + tl.arange(0, BN)
        if BIG:
            c = c.to(tl.int64)
        m = rm[:, None] & (c < D)[None, :]
        x = _in(tl.load(x_ptr + xr[:, None] + (c * x0)[None, :], mask=m, other=0), LB, CV, F64)
        _st(o_ptr + oor[:, None] + (c * o0)[None, :], _exp(x - mx, F64) * inv, m, SB)


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


def softmax_int(self, dim, dtype=None):
    dt = self.dtype if dtype is None else dtype
    out = torch.empty(self.shape, dtype=dt, device=self.device)
    n = out.numel()
    if n == 0:
        return out
    x, o = self, out
    if x.dim() == 0:
        x = x.as_strided((1,), (1,), x.storage_offset())
        o = out.view(1)
    dim = dim % x.dim()
    cpu = x.device.type == "cpu"
    bf = torch.bfloat16
    F64 = dt == torch.float64
    CV = 0
    if dt != x.dtype:
        CV = 1 if dt == torch.float16 else (2 if dt == bf else 0)
    kw = dict(LB=cpu and x.dtype == bf, SB=cpu and dt == bf, CV=CV, F64=F64)
    D = x.shape[dim]
    others = [i for i in range(x.dim()) if i != dim and x.shape[i] != 1]
    rows = _plan([x.shape[i] for i in others], [[t.stride(i) for i in others] for t in (x, o)])
    xs, os_ = rows[0][1]
    if len(rows) == 1 and (x.stride(dim) == 1 or D == 1) and (os_ == D or rows[0][0] == 1) \
            and (o.stride(dim) == 1 or D == 1):
        BLOCK = _np2(D)
        if BLOCK <= 16384:
            w = 4 if BLOCK <= 2048 else (8 if BLOCK <= 8192 else 16)
            _k_row[(rows[0][0],)](x, o, D, xs, BLOCK=BLOCK, num_warps=w, **kw)
        else:
            BLOCK = 16384
            chunks = -(-D // BLOCK)
            _k_long[(rows[0][0],)](x, o, D, xs, chunks, BLOCK=BLOCK, MANY=chunks > 16, num_warps=32, **kw)
        return out
    if x.stride(dim) == 1:
        BN = min(1024, _np2(D))
        BM = max(1, 2048 // BN)
    else:
        BN = min(16, _np2(D))
        BM = 1024 // BN
    _launch_rows(_k_gen, [x, o], rows, D, [x.stride(dim), o.stride(dim)], [], kw, BM, BN)
    return out
