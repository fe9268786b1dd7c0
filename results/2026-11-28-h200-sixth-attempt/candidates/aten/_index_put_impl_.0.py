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


@triton.jit(do_not_specialize=["M", "NB", "n1", "n2", "n3", "n4"])
def _k_fill(k_ptr, v_ptr, o_ptr, M, N, NB, n1, n2, n3, n4,
            k0, k1, k2, k3, k4, kl, v0, v1, v2, v3, v4, vl, o0, o1, o2, o3, o4, ol,
            BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, BIG: tl.constexpr, MODE: tl.constexpr,
            HM: tl.constexpr, V0: tl.constexpr, LB: tl.constexpr):
    # one mask, and values that do not depend on the place in it: 0 put, 1 float32, 2 float64, 3 integers, 4 or
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    pm = pid // NB
    r = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NB) * BN + tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    ko = _off(r, ND, n1, n2, n3, n4, k1, k2, k3, k4, kl)[:, None] + (c * k0)[None, :]
    vo = _off(r, ND, n1, n2, n3, n4, v1, v2, v3, v4, vl)[:, None] + (c * v0)[None, :]
    oo = _off(r, ND, n1, n2, n3, n4, o1, o2, o3, o4, ol)[:, None] + (c * o0)[None, :]
    if HM:
        hit = m & (tl.load(k_ptr + ko, mask=m, other=0) != 0)
    else:
        hit = m
    x = tl.load(o_ptr + oo, mask=m, other=0)
    if V0:
        v = tl.load(v_ptr)
    else:
        v = tl.load(v_ptr + vo, mask=hit, other=0)
    if MODE == 0:
        tl.store(o_ptr + oo, tl.where(hit, v, x), mask=m)
    elif MODE == 1:
        _st(o_ptr + oo, _up(x, LB) + _up(v, LB), hit, LB)
    elif MODE == 2:
        tl.store(o_ptr + oo, x + v, mask=hit)
    elif MODE == 3:
        tl.store(o_ptr + oo, (x.to(tl.int64) + v.to(tl.int64)).to(o_ptr.dtype.element_ty), mask=hit)
    else:
        tl.store(o_ptr + oo, x | v, mask=hit)


@triton.jit
def _act(p, w, v_ptrs, m, MODE: tl.constexpr, LB: tl.constexpr):
    # p: places in self, w: the same places in a float32 scratch
    if MODE == 0:
        tl.store(p, tl.load(v_ptrs, mask=m, other=0), mask=m)
    elif MODE == 1:
        tl.atomic_add(p, tl.load(v_ptrs, mask=m, other=0), mask=m, sem="relaxed")
    elif MODE == 2:
        v = tl.load(v_ptrs, mask=m, other=0)
        tl.store(p, v, mask=m & (v != 0))
    elif MODE == 3:
        tl.store(w, _up(tl.load(p, mask=m, other=0), LB), mask=m)
    elif MODE == 4:
        tl.atomic_add(w, _up(tl.load(v_ptrs, mask=m, other=0), LB), mask=m, sem="relaxed")
    else:
        _st(p, tl.load(w, mask=m, other=0), m, LB)


@triton.jit
def _k_one(s_ptr, v_ptr, w_ptr, i_ptr, j_ptr, nB, z0, t0, z1, t1, vb,
           BLOCK: tl.constexpr, NI: tl.constexpr, MODE: tl.constexpr, LB: tl.constexpr):
    # single elements
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < nB
    i = tl.load(i_ptr + b, mask=m, other=0)
    if NI == 0:
        m = m & (i >= 0)
        o = i
    else:
        o = tl.where(i < 0, i + z0, i) * t0
        if NI == 2:
            j = tl.load(j_ptr + b, mask=m, other=0)
            o += tl.where(j < 0, j + z1, j) * t1
    _act(s_ptr + o, w_ptr + o, v_ptr + b * vb, m, MODE, LB)


@triton.jit(do_not_specialize=["nB", "n1", "n2", "n3", "n4"])
def _k_put(s_ptr, v_ptr, w_ptr, i_ptr, j_ptr, nB, NR, NC, z0, t0, z1, t1, vb, n1, n2, n3, n4,
           v1, v2, v3, v4, vl, s1, s2, s3, s4, sl,
           BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, NI: tl.constexpr, MODE: tl.constexpr,
           LB: tl.constexpr):
    # BM places of the indices times BN elements of the dimensions that are not indexed
    pid = tl.program_id(0).to(tl.int64)
    pm = pid // NC
    b = pm * BM + tl.arange(0, BM)
    c = (pid - pm * NC) * BN + tl.arange(0, BN)
    mb = b < nB
    i = tl.load(i_ptr + b, mask=mb, other=0)
    if NI == 0:
        mb = mb & (i >= 0)
        o = i
    else:
        o = tl.where(i < 0, i + z0, i) * t0
        if NI == 2:
            j = tl.load(j_ptr + b, mask=mb, other=0)
            o += tl.where(j < 0, j + z1, j) * t1
    m = mb[:, None] & (c < NR)[None, :]
    so = o[:, None] + _off(c, ND, n1, n2, n3, n4, s1, s2, s3, s4, sl)[None, :]
    vo = (b * vb)[:, None] + _off(c, ND, n1, n2, n3, n4, v1, v2, v3, v4, vl)[None, :]
    _act(s_ptr + so, w_ptr + so, v_ptr + vo, m, MODE, LB)


@triton.jit(do_not_specialize=["nq", "L", "NR", "NC", "n1", "n2", "n3", "n4"])
def _k_mput(s_ptr, v_ptr, w_ptr, i_ptr, p_ptr, k_ptr, nq, L, NR, NC, vq, vl_, n1, n2, n3, n4,
            v1, v2, v3, v4, vl, s1, s2, s3, s4, sl,
            BM: tl.constexpr, BN: tl.constexpr, ND: tl.constexpr, NM: tl.constexpr, HI: tl.constexpr,
            MODE: tl.constexpr, LB: tl.constexpr):
    # nq places of integer indices, each with all positions of the masks, whose number only the device knows
    have = tl.load(k_ptr)
    least = have
    for z in tl.static_range(NM):
        k = tl.load(k_ptr + z)
        have = tl.where(k > have, k, have)
        least = tl.where(k < least, k, least)
    have = tl.where(least == 0, 0, have)
    have = tl.where(have > L, tl.cast(L, tl.int64), have)
    total = have * nq
    some = tl.where(have > 0, have, 1)
    tiles = ((total + (BM - 1)) // BM) * NC
    first = tl.program_id(0).to(tl.int64)
    for t in range(first, tiles, tl.num_programs(0).to(tl.int64)):
        pm = t // NC
        b = pm * BM + tl.arange(0, BM)
        c = (t - pm * NC) * BN + tl.arange(0, BN)
        mb = b < total
        q = b // some
        l = b - q * some
        o = tl.load(p_ptr + l, mask=mb, other=0)
        if HI:
            o += tl.load(i_ptr + q, mask=mb, other=0)
        m = mb[:, None] & (c < NR)[None, :]
        so = o[:, None] + _off(c, ND, n1, n2, n3, n4, s1, s2, s3, s4, sl)[None, :]
        vo = (q * vq + l * vl_)[:, None] + _off(c, ND, n1, n2, n3, n4, v1, v2, v3, v4, vl)[None, :]
        _act(s_ptr + so, w_ptr + so, v_ptr + vo, m, MODE, LB)


@triton.jit
def _k_fold_int(t_ptr, i_ptr, n, z, t, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < n
    i = tl.load(i_ptr + b, mask=m, other=0)
    o = tl.where(i < 0, i + z, i) * t
    if FIRST == 0:
        q = tl.load(t_ptr + b, mask=m, other=0)
        o = tl.where(q < 0, q, q + o)
    tl.store(t_ptr + b, o, mask=m)


@triton.jit
def _k_fold_mask(t_ptr, p_ptr, k_ptr, n, L, which, NM: tl.constexpr, KNOWN: tl.constexpr, FIRST: tl.constexpr,
                 BLOCK: tl.constexpr):
    # the mask's positions, of which there may be one for all
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < n
    l = b % L
    have = tl.load(k_ptr)
    least = have
    for q in tl.static_range(NM):
        k = tl.load(k_ptr + q)
        have = tl.where(k > have, k, have)
        least = tl.where(k < least, k, least)
    mine = tl.load(k_ptr + which)
    if KNOWN:
        have = have * 0 + L
    have = tl.where(least == 0, 0, have)
    ok = m & (l < have)
    o = tl.load(p_ptr + tl.where(mine == 1, 0, l), mask=ok, other=-1)
    if FIRST == 0:
        q0 = tl.load(t_ptr + b, mask=m, other=-1)
        o = tl.where((q0 < 0) | (o < 0), -1, q0 + o)
    tl.store(t_ptr + b, o, mask=m)


@triton.jit
def _k_count(k_ptr, c_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(k_ptr + i, mask=i < n, other=0)
    tl.store(c_ptr + pid, tl.sum((k != 0).to(tl.int32), 0).to(tl.int64))


@triton.jit
def _k_scan(c_ptr, k_ptr, n, BLOCK: tl.constexpr):
    run = tl.sum(tl.zeros([BLOCK], dtype=tl.int64), 0)
    for s in range(0, n, BLOCK):
        i = s + tl.arange(0, BLOCK)
        c = tl.load(c_ptr + i, mask=i < n, other=0)
        t = tl.cumsum(c, 0)
        tl.store(c_ptr + i, run + t - c, mask=i < n)
        run = run + tl.sum(c, 0)
    tl.store(k_ptr, run)


@triton.jit
def _k_compact(k_ptr, c_ptr, p_ptr, n, n1, n2, n3, n4, s1, s2, s3, s4, sl, ND: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    hit = (tl.load(k_ptr + i, mask=i < n, other=0) != 0)
    one = hit.to(tl.int32)
    r = tl.load(c_ptr + pid) + (tl.cumsum(one, 0) - one)
    tl.store(p_ptr + r, _off(i, ND, n1, n2, n3, n4, s1, s2, s3, s4, sl), mask=hit & (i < n))


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


_IVT = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _iv(t):
    # the same memory as integers
    return t.view(_IVT[t.element_size()])


def _prod(v):
    r = 1
    for x in v:
        r *= int(x)
    return r


def _pad(dims, j):
    # dims: outermost first, of (size, strides)
    outer = dims[::-1]
    mid = [s[j] for _, s in outer[:-1]]
    return mid + [0] * (4 - len(mid)) + [outer[-1][1][j]]


def _sizes(dims):
    z = [n for n, _ in dims[::-1][:-1]]
    return z + [1] * (4 - len(z))


def _modes(dt):
    # how values are added one after the other
    if dt == torch.bool:
        return [2]
    if dt in (torch.float16, torch.bfloat16):
        return [3, 4, 5]
    return [1]


def _masked(self, mask, at, values, acc):
    # one mask over the dimensions at[0] to at[1] - 1, or none
    x, v = self, values
    dt = self.dtype
    nm = at[1] - at[0]
    shape = list(self.shape)
    R = shape[:at[0]] + ([1] if nm else []) + shape[at[1]:]
    while v.dim() > len(R):
        v = v[0]
    v = v.expand(R)
    vs = list(v.stride())
    vs = vs[:at[0]] + [0] * nm + vs[at[0] + (1 if nm else 0):]
    ks = [0] * len(shape)
    if nm:
        ks[at[0]:at[1]] = list(mask.stride())
        k = mask.view(torch.int8)
    xs = list(self.stride())
    if not acc:
        x, v = _iv(x), _iv(v)
        MODE = 0
    elif dt.is_complex:
        x, v = torch.view_as_real(x), torch.view_as_real(v)
        xs, vs, ks, shape = [2 * s for s in xs] + [1], [2 * s for s in vs] + [1], ks + [0], shape + [2]
        MODE = 2
    elif dt == torch.bool:
        x, v = _iv(x), _iv(v)
        MODE = 4
    elif dt.is_floating_point:
        MODE = 1 if dt.itemsize <= 4 else 2
    else:
        MODE = 3
    d = _plan(shape, [ks, vs, xs])
    LB = self.device.type == "cpu" and dt == torch.bfloat16 and acc
    _launch(_k_fill, [k if nm else x, v, x], d, [],
            dict(MODE=MODE, HM=nm > 0, V0=all(s[1] == 0 for _, s in d), LB=LB))


def _positions(mask, st, kout):
    # offsets by the strides st of the true places, in row-major order; their number goes to kout
    n = mask.numel()
    k = mask.contiguous().view(torch.int8)
    dims = []
    for a, s in zip(mask.shape, st):
        if a == 1:
            continue
        if dims and dims[-1][1][0] == s * a:
            dims[-1] = (dims[-1][0] * a, [s])
        else:
            dims.append((int(a), [s]))
    if not dims:
        dims = [(1, [0])]
    BLOCK = 2048
    nb = -(-n // BLOCK)
    c = torch.empty((nb,), dtype=torch.int64, device=mask.device)
    p = torch.empty((n,), dtype=torch.int64, device=mask.device)
    _k_count[(nb,)](k, c, n, BLOCK=BLOCK)
    _k_scan[(1,)](c, kout, nb, BLOCK=1024)
    _k_compact[(nb,)](k, c, p, n, *_sizes(dims), *_pad(dims, 0), ND=len(dims), BLOCK=BLOCK)
    return p


def _scatter(x, v, w, i, j, nB, z, vb, rest, NI, MODE, LB):
    if len(rest) > 5:
        n, st = rest[0]
        for q in range(n):
            def at(t, k):
                return t.as_strided((1,), (1,), t.storage_offset() + q * st[k])
            _scatter(at(x, 1), at(v, 0), at(w, 1), i, j, nB, z, vb, rest[1:], NI, MODE, LB)
        return
    NR = _prod([n for n, _ in rest])
    if NR == 1:
        BLOCK = 512
        _k_one[(-(-nB // BLOCK),)](x, v, w, i, j, nB, *z, vb, BLOCK=BLOCK, NI=NI, MODE=MODE, LB=LB, num_warps=4)
        return
    BN = min(1024, _np2(NR))
    BM = min(_np2(nB), max(1, 2048 // BN))
    NC = -(-NR // BN)
    _k_put[(-(-nB // BM) * NC,)](x, v, w, i, j, nB, NR, NC, *z, vb, *_sizes(rest), *_pad(rest, 0), *_pad(rest, 1),
                                 BM=BM, BN=BN, ND=len(rest), NI=NI, MODE=MODE, LB=LB, num_warps=4)


def _scatter_m(x, v, w, i, p, ks, nm, nq, L, vq, vl, rest, MODE, LB):
    if len(rest) > 5:
        n, st = rest[0]
        for q in range(n):
            def at(t, k):
                return t.as_strided((1,), (1,), t.storage_offset() + q * st[k])
            _scatter_m(at(x, 1), at(v, 0), at(w, 1), i, p, ks, nm, nq, L, vq, vl, rest[1:], MODE, LB)
        return
    NR = _prod([n for n, _ in rest])
    BN = min(1024, _np2(NR))
    BM = min(_np2(nq * L), max(1, 2048 // BN))
    NC = -(-NR // BN)
    grid = min(-(-nq * L // BM) * NC, 2112)
    _k_mput[(grid,)](x, v, w, p if i is None else i, p, ks, nq, L, NR, NC, vq, vl,
                     *_sizes(rest), *_pad(rest, 0), *_pad(rest, 1),
                     BM=BM, BN=BN, ND=len(rest), NM=nm, HI=i is not None, MODE=MODE, LB=LB, num_warps=4)


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    if self.numel() == 0:
        return self
    src = []
    d = 0
    for ix in indices:
        if ix is None:
            d += 1
        elif ix.dtype == torch.bool or ix.dtype == torch.uint8:
            if ix.dim() > 0:
                src.append((ix.view(torch.bool) if ix.dtype == torch.uint8 else ix, d, True))
                d += ix.dim()
        else:
            src.append((ix if ix.dtype == torch.int64 else ix.to(torch.int64), d, False))
            d += 1
    if self.dtype.is_complex and values.is_conj():
        values = values.resolve_conj()
    if not src:
        _masked(self, None, (0, 0), values, accumulate)
        return self
    dims = []
    for t, at, ism in src:
        dims += list(range(at, at + (t.dim() if ism else 1)))
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    others = [i for i in range(self.dim()) if i not in dims]
    pre = [i for i in others if i < dims[0]] if together else []
    post = [i for i in others if i not in pre]
    shape = self.shape
    back = len(post)
    vd = values.shape[values.dim() - 1 - back] if values.dim() > back else 1
    if len(src) == 1 and src[0][2] and vd == 1:
        t, at, _ = src[0]
        _masked(self, t, (at, at + t.dim()), values, accumulate)
        return self
    ints = [e for e in src if not e[2]]
    masks = [e for e in src if e[2]]
    B = _bshape(*[e[0].shape for e in ints]) if ints else []
    known = False
    L = 1
    if masks:
        last = B[-1] if B else 1
        known = last != 1
        if any(e[0].numel() == 0 for e in masks):
            return self
        L = last if known else (vd if vd != 1 else max(e[0].numel() for e in masks))
        B = list(B[:-1]) + [L]
    nB = _prod(B)
    if nB == 0:
        return self
    dev = self.device
    # the values' strides along the indices, which are to be one; where the masks' positions come last, and are
    # counted on the device, that dimension stays apart
    apart = bool(masks) and not known
    R = [shape[i] for i in pre] + list(B) + [shape[i] for i in post]
    v = values
    while v.dim() > len(R):
        v = v[0]
    own = [1] * (len(R) - v.dim()) + list(v.shape)
    n0, n1 = len(pre), len(pre) + len(B)
    cut = n1 - 1 if apart else n1
    v = v.expand(own[:n0] + list(B[:cut - n0]) + own[cut:])
    for _ in range(2):
        bs = [(n, s) for n, s in zip(B[:cut - n0], v.stride()[n0:cut]) if n != 1]
        if all(bs[k][1] == bs[k + 1][1] * bs[k + 1][0] for k in range(len(bs) - 1)):
            break
        v = v.contiguous()
    vb = bs[-1][1] if bs else 0
    v = v.expand(R)
    vlast = v.stride(n1 - 1) if apart and R[n1 - 1] != 1 else 0
    vs = v.stride()
    rest = [(shape[i], vs[k], self.stride(i)) for k, i in enumerate(pre)]
    rest += [(shape[i], vs[len(pre) + len(B) + k], self.stride(i)) for k, i in enumerate(post)]
    x = self
    f = 1
    if not accumulate:
        x, v = _iv(x), _iv(v)
        modes = [0]
    elif self.dtype.is_complex:
        x, v = torch.view_as_real(x), torch.view_as_real(v)
        f = 2
        vb = 2 * vb
        vlast = 2 * vlast
        rest = [(n, 2 * a, 2 * b) for n, a, b in rest] + [(2, 1, 1)]
        modes = [1]
    else:
        modes = _modes(self.dtype)
        if self.dtype == torch.bool:
            x, v = _iv(x), _iv(v)
    rest = _plan([e[0] for e in rest], [[e[1] for e in rest], [e[2] for e in rest]])
    if _prod([n for n, _ in rest]) == 0:
        return self
    st = [f * s for s in self.stride()]
    z = [1, 0, 1, 0]
    if not masks and len(ints) <= 2:
        NI = len(ints)
        flat = [e[0].expand(B).contiguous() for e in ints]
        i, j = flat[0], flat[-1]
        z = [shape[ints[0][1]], st[ints[0][1]], shape[ints[-1][1]], st[ints[-1][1]]]
    else:
        NI = 0
        BLOCK = 1024
        nq = _prod(B[:-1]) if apart else nB
        i = None
        if ints:
            i = torch.empty((nq,), dtype=torch.int64, device=dev)
            grid = (-(-nq // BLOCK),)
            first = True
            for t, at, _ in ints:
                q = t.expand(list(B[:-1]) + [1] if apart else B).contiguous()
                _k_fold_int[grid](i, q, nq, shape[at], st[at], FIRST=int(first), BLOCK=BLOCK)
                first = False
        j = i
        if masks:
            ks = torch.empty((len(masks),), dtype=torch.int64, device=dev)
            ps = [_positions(t, st[at:at + t.dim()], ks[n:n + 1]) for n, (t, at, _) in enumerate(masks)]
            n = L if apart else nB
            into = torch.empty((n,), dtype=torch.int64, device=dev) if apart or i is None else i
            grid = (-(-n // BLOCK),)
            first = apart or i is None
            for k, p in enumerate(ps):
                _k_fold_mask[grid](into, p, ks, n, L, k, NM=len(masks), KNOWN=known, FIRST=int(first), BLOCK=BLOCK)
                first = False
            if not apart:
                i = j = into
    w = x
    if 3 in modes:
        span = sum((n - 1) * s for n, s in zip(self.shape, self.stride())) + 1
        w = torch.empty((span,), dtype=torch.float32, device=dev)
    LB = dev.type == "cpu" and self.dtype == torch.bfloat16 and accumulate
    for MODE in modes:
        if apart:
            _scatter_m(x, v, w, i, into, ks, len(masks), nq, L, vb, vlast, rest, MODE, LB)
            continue
        _scatter(x, v, w, i, j, nB, z, vb, rest, NI, MODE, LB)
    return self

