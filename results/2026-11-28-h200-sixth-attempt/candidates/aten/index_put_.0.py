import torch
import triton
import triton.language as tl


def _prod(xs):
    r = 1
    for v in xs:
        r *= int(v)
    return r


def _coalesce(shape, sts, order=True):
    # sts: one list of strides per tensor; the first tensor decides the order
    idx = [i for i in range(len(shape)) if shape[i] != 1]
    if order:
        idx.sort(key=lambda i: -sts[0][i])
    dims, out = [], []
    for i in idx:
        n = int(shape[i])
        s = [int(st[i]) for st in sts]
        if dims and all(p == q * n for p, q in zip(out[-1], s)):
            dims[-1] *= n
            out[-1] = s
        else:
            dims.append(n)
            out.append(s)
    if not dims:
        dims, out = [1], [[1] * len(sts)]
    return dims, out


def _np2(n):
    return triton.next_power_of_2(max(int(n), 1))


def _plain(t):
    if t.is_conj():
        t = t.resolve_conj()
    if t.is_neg():
        t = t.resolve_neg()
    return t

@triton.jit
def _mput(v, s, ACC: tl.constexpr, ADT: tl.constexpr, ISB: tl.constexpr):
    if ACC:
        y = s.to(ADT) + v.to(ADT)
        if ISB:
            y = (y != 0).to(tl.uint8)
    else:
        y = v
    return y


@triton.jit
def _k_flat(o, x0, x1, x2, n, ACC: tl.constexpr, ADT: tl.constexpr, ISB: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    if S0 == 0:
        v0 = tl.broadcast_to(tl.load(x0), (BLOCK,))
    else:
        v0 = tl.load(x0 + i, mask=m, other=0)
    if S1 == 0:
        v1 = tl.broadcast_to(tl.load(x1), (BLOCK,))
    else:
        v1 = tl.load(x1 + i, mask=m, other=0)
    if S2 == 0:
        v2 = tl.broadcast_to(tl.load(x2), (BLOCK,))
    else:
        v2 = tl.load(x2 + i, mask=m, other=0)
    if ACC:
        y = _mput(v1, v2, ACC, ADT, ISB)
        tl.store(o + i, y.to(o.dtype.element_ty), mask=m & (v0 != 0))
    else:
        # the whole vector is written back: one wide store in place of many short ones
        tl.store(o + i, tl.where(v0 != 0, v1, v2), mask=m)


@triton.jit(do_not_specialize=["nb", "d1", "d2", "d3"])
def _k_rows(o, x0, x1, x2, N, nb, d1, d2, d3, t0_0, t0_1, t0_2, t0_3, t1_0, t1_1, t1_2, t1_3, t2_0, t2_1, t2_2, t2_3, t3_0, t3_1, t3_2, t3_3, ACC: tl.constexpr, ADT: tl.constexpr, ISB: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // nb).to(tl.int64)
    cb = pid % nb
    i3 = row % d3
    q3 = row // d3
    i2 = q3 % d2
    q2 = q3 // d2
    i1 = q2 % d1
    i0 = q2 // d1
    c = cb * BLOCK + tl.arange(0, BLOCK)
    m = c < N
    bo = i0 * t0_0 + i1 * t0_1 + i2 * t0_2 + i3 * t0_3
    b0 = i0 * t1_0 + i1 * t1_1 + i2 * t1_2 + i3 * t1_3
    if S0 == 0:
        v0 = tl.broadcast_to(tl.load(x0 + b0), (BLOCK,))
    else:
        v0 = tl.load(x0 + b0 + c, mask=m, other=0)
    b1 = i0 * t2_0 + i1 * t2_1 + i2 * t2_2 + i3 * t2_3
    if S1 == 0:
        v1 = tl.broadcast_to(tl.load(x1 + b1), (BLOCK,))
    else:
        v1 = tl.load(x1 + b1 + c, mask=m, other=0)
    b2 = i0 * t3_0 + i1 * t3_1 + i2 * t3_2 + i3 * t3_3
    if S2 == 0:
        v2 = tl.broadcast_to(tl.load(x2 + b2), (BLOCK,))
    else:
        v2 = tl.load(x2 + b2 + c, mask=m, other=0)
    if ACC:
        y = _mput(v1, v2, ACC, ADT, ISB)
        tl.store(o + bo + c, y.to(o.dtype.element_ty), mask=m & (v0 != 0))
    else:
        tl.store(o + bo + c, tl.where(v0 != 0, v1, v2), mask=m)


@triton.jit(do_not_specialize=["n", "d1", "d2", "d3", "d4", "d5", "t0_0", "t0_1", "t0_2", "t0_3", "t0_4", "t0_5", "t1_0", "t1_1", "t1_2", "t1_3", "t1_4", "t1_5", "t2_0", "t2_1", "t2_2", "t2_3", "t2_4", "t2_5", "t3_0", "t3_1", "t3_2", "t3_3", "t3_4", "t3_5"])
def _k_gen(o, x0, x1, x2, n, d1, d2, d3, d4, d5, t0_0, t0_1, t0_2, t0_3, t0_4, t0_5, t1_0, t1_1, t1_2, t1_3, t1_4, t1_5, t2_0, t2_1, t2_2, t2_3, t2_4, t2_5, t3_0, t3_1, t3_2, t3_3, t3_4, t3_5, ACC: tl.constexpr, ADT: tl.constexpr, ISB: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    i5 = i % d5
    q = i // d5
    i4 = q % d4
    q = q // d4
    i3 = q % d3
    q = q // d3
    i2 = q % d2
    q = q // d2
    i1 = q % d1
    i0 = q // d1
    oo = i0 * t0_0 + i1 * t0_1 + i2 * t0_2 + i3 * t0_3 + i4 * t0_4 + i5 * t0_5
    f0 = i0 * t1_0 + i1 * t1_1 + i2 * t1_2 + i3 * t1_3 + i4 * t1_4 + i5 * t1_5
    v0 = tl.load(x0 + f0, mask=m, other=0)
    f1 = i0 * t2_0 + i1 * t2_1 + i2 * t2_2 + i3 * t2_3 + i4 * t2_4 + i5 * t2_5
    v1 = tl.load(x1 + f1, mask=m, other=0)
    f2 = i0 * t3_0 + i1 * t3_1 + i2 * t3_2 + i3 * t3_3 + i4 * t3_4 + i5 * t3_5
    v2 = tl.load(x2 + f2, mask=m, other=0)
    y = _mput(v1, v2, ACC, ADT, ISB)
    tl.store(o + oo, y.to(o.dtype.element_ty), mask=m & (v0 != 0))


def _k_go(o, ins, dims, sts, ex=(), ce={}):
    n = _prod(dims)
    if n == 0:
        return
    last = sts[-1]
    ok = last[0] == 1 and all(v in (0, 1) for v in last[1:])
    S = {"S%d" % j: last[1 + j] for j in range(3)}
    big = 2048 if o.element_size() <= 2 else 1024
    if ok and len(dims) == 1:
        BLOCK = 512 if n <= 131072 else big
        _k_flat[(triton.cdiv(n, BLOCK),)](o, *ins, n, *ex, **ce, **S, BLOCK=BLOCK, num_warps=4)
    elif ok and len(dims) <= 5 and dims[-1] >= 256:
        N = dims[-1]
        BLOCK = min(big, _np2(N))
        nb = triton.cdiv(N, BLOCK)
        pad = 5 - len(dims)
        dd = [1] * pad + list(dims[:-1])
        st = [0] * pad
        args = []
        for t in range(len(ins) + 1):
            args += st + [v[t] for v in sts[:-1]]
        _k_rows[(nb * _prod(dims[:-1]),)](o, *ins, N, nb, *dd[1:], *args, *ex, **ce, **S, BLOCK=BLOCK, num_warps=4)
    elif len(dims) <= 6:
        pad = 6 - len(dims)
        dd = [1] * pad + list(dims)
        args = []
        for t in range(len(ins) + 1):
            args += [0] * pad + [v[t] for v in sts]
        BLOCK = 512
        _k_gen[(triton.cdiv(n, BLOCK),)](o, *ins, n, *dd[1:], *args, *ex, **ce, BLOCK=BLOCK, num_warps=4)
    else:
        ts = [o] + list(ins)
        for i in range(dims[0]):
            sub = [t.as_strided((1,), (1,), t.storage_offset() + i * sts[0][j]) for j, t in enumerate(ts)]
            _k_go(sub[0], sub[1:], dims[1:], sts[1:], ex, ce)


@triton.jit(do_not_specialize=["n0", "n1", "n2"])
def _put(s, v, i0, i1, i2, nB, R, nrb, n0, n1, n2, z0, z1, z2, t0, t1, t2, vb, sr, vr,
         K: tl.constexpr, BB: tl.constexpr, BR: tl.constexpr):
    # self[i0[b], i1[b], i2[b], r] = values[b, r]
    pid = tl.program_id(0)
    b = (pid // nrb).to(tl.int64) * BB + tl.arange(0, BB)
    r = (pid % nrb).to(tl.int64) * BR + tl.arange(0, BR)
    mb = b < nB
    a = tl.load(i0 + b * t0, mask=mb, other=0)
    off = tl.where(a < 0, a + n0, a) * z0
    if K > 1:
        a = tl.load(i1 + b * t1, mask=mb, other=0)
        off += tl.where(a < 0, a + n1, a) * z1
    if K > 2:
        a = tl.load(i2 + b * t2, mask=mb, other=0)
        off += tl.where(a < 0, a + n2, a) * z2
    m = mb[:, None] & (r < R)[None, :]
    x = tl.load(v + (b * vb)[:, None] + (r * vr)[None, :], mask=m)
    tl.store(s + off[:, None] + (r * sr)[None, :], x, mask=m)


@triton.jit(do_not_specialize=["n0", "n1", "n2"])
def _put1(s, v, i0, i1, i2, nB, n0, n1, n2, z0, z1, z2, t0, t1, t2, vb, K: tl.constexpr, BLOCK: tl.constexpr):
    # self[i0[b], i1[b], i2[b]] = values[b]
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < nB
    a = tl.load(i0 + b * t0, mask=m, other=0, eviction_policy="evict_first")
    off = tl.where(a < 0, a + n0, a) * z0
    if K > 1:
        a = tl.load(i1 + b * t1, mask=m, other=0, eviction_policy="evict_first")
        off += tl.where(a < 0, a + n1, a) * z1
    if K > 2:
        a = tl.load(i2 + b * t2, mask=m, other=0, eviction_policy="evict_first")
        off += tl.where(a < 0, a + n2, a) * z2
    x = tl.load(v + b * vb, mask=m, eviction_policy="evict_first")
    tl.store(s + off, x, mask=m)


@triton.jit(do_not_specialize=["nB", "n0", "n1", "n2"])
def _link(head, nxt, i0, i1, i2, nB, n0, n1, n2, t0, t1, t2, K: tl.constexpr, BLOCK: tl.constexpr):
    # a list of the b that name the same element, its head in head[key]
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = b < nB
    bl = b.to(tl.int64)
    a = tl.load(i0 + bl * t0, mask=m, other=0)
    k = tl.where(a < 0, a + n0, a)
    if K > 1:
        a = tl.load(i1 + bl * t1, mask=m, other=0)
        k = k * n1 + tl.where(a < 0, a + n1, a)
    if K > 2:
        a = tl.load(i2 + bl * t2, mask=m, other=0)
        k = k * n2 + tl.where(a < 0, a + n2, a)
    p = tl.atomic_xchg(head + k, b, mask=m)
    tl.store(nxt + b, p, mask=m)


@triton.jit(do_not_specialize=["n0", "n1", "n2"])
def _accl(s, v, head, nxt, i0, i1, i2, R, nrb, n0, n1, n2, z0, z1, z2, t0, t1, t2, vb, sr, vr,
          K: tl.constexpr, ADT: tl.constexpr, ISB: tl.constexpr, BR: tl.constexpr):
    # the program of a list's head adds up the whole list
    pid = tl.program_id(0)
    b = pid // nrb
    bl = b.to(tl.int64)
    a = tl.load(i0 + bl * t0)
    a = tl.where(a < 0, a + n0, a)
    k = a
    off = a * z0
    if K > 1:
        a = tl.load(i1 + bl * t1)
        a = tl.where(a < 0, a + n1, a)
        k = k * n1 + a
        off += a * z1
    if K > 2:
        a = tl.load(i2 + bl * t2)
        a = tl.where(a < 0, a + n2, a)
        k = k * n2 + a
        off += a * z2
    if tl.load(head + k) == b:
        r = (pid % nrb).to(tl.int64) * BR + tl.arange(0, BR)
        m = r < R
        ro = r * vr
        ptr = s + off + r * sr
        q = tl.load(nxt + b)
        y = tl.load(ptr, mask=m, other=0)
        acc = tl.load(v + bl * vb + ro, mask=m, other=0).to(ADT)
        while q >= 0:
            x = tl.load(v + q.to(tl.int64) * vb + ro, mask=m, other=0)
            q = tl.load(nxt + q)
            acc += x.to(ADT)
        z = y.to(ADT) + acc
        if ISB:
            z = (z != 0).to(tl.uint8)
        tl.store(ptr, z.to(s.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["n", "e1", "e2", "e3", "e4", "s0", "s1", "s2", "s3", "s4", "size", "stride"])
def _lin_i(lin, key, idx, n, e1, e2, e3, e4, s0, s1, s2, s3, s4, size, stride, FIRST: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < n
    j4 = b % e4
    q = b // e4
    j3 = q % e3
    q = q // e3
    j2 = q % e2
    q = q // e2
    j1 = q % e1
    j0 = q // e1
    a = tl.load(idx + j0 * s0 + j1 * s1 + j2 * s2 + j3 * s3 + j4 * s4, mask=m, other=0)
    a = tl.where(a < 0, a + size, a)
    if FIRST:
        l = a * stride
        k = a
    else:
        l = tl.load(lin + b, mask=m, other=0) + a * stride
        k = tl.load(key + b, mask=m, other=0)
        k = tl.where(k < 0, k, k * size + a)
    tl.store(lin + b, l, mask=m)
    tl.store(key + b, k, mask=m)


@triton.jit(do_not_specialize=["n", "L", "f1", "f2", "f3", "f4", "f5", "w0", "w1", "w2", "w3", "w4", "w5", "size"])
def _lin_m(lin, key, pos, cnt, n, L, f1, f2, f3, f4, f5, w0, w1, w2, w3, w4, w5, size,
           FIRST: tl.constexpr, BLOCK: tl.constexpr):
    # pos: the flat positions where a mask is true, cnt how many
    b = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = b < n
    j = b % L
    c = tl.load(cnt)
    j = tl.where(c == 1, 0, j)
    ok = m & (j < c)
    e = tl.load(pos + j, mask=ok, other=0)
    j5 = e % f5
    q = e // f5
    j4 = q % f4
    q = q // f4
    j3 = q % f3
    q = q // f3
    j2 = q % f2
    q = q // f2
    j1 = q % f1
    j0 = q // f1
    o = j0 * w0 + j1 * w1 + j2 * w2 + j3 * w3 + j4 * w4 + j5 * w5
    if FIRST:
        l = o
        k = e
    else:
        l = tl.load(lin + b, mask=m, other=0) + o
        k = tl.load(key + b, mask=m, other=0)
        k = tl.where(k < 0, k, k * size + e)
    k = tl.where(ok, k, -1)
    tl.store(lin + b, l, mask=m)
    tl.store(key + b, k, mask=m)


@triton.jit(do_not_specialize=["n", "f1", "f2", "f3", "f4", "f5", "w0", "w1", "w2", "w3", "w4", "w5"])
def _lin_j(linm, tot, ntot, pos, cnt, n, f1, f2, f3, f4, f5, w0, w1, w2, w3, w4, w5, FIRST: tl.constexpr,
           BLOCK: tl.constexpr):
    # where position j of the masks leads; a mask that is true once goes with every j of the others
    pid = tl.program_id(0)
    j = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = j < n
    c = tl.load(cnt)
    jj = tl.where(c == 1, 0, j)
    e = tl.load(pos + jj, mask=m & (jj < c), other=0)
    j5 = e % f5
    q = e // f5
    j4 = q % f4
    q = q // f4
    j3 = q % f3
    q = q // f3
    j2 = q % f2
    q = q // f2
    j1 = q % f1
    j0 = q // f1
    l = j0 * w0 + j1 * w1 + j2 * w2 + j3 * w3 + j4 * w4 + j5 * w5
    if not FIRST:
        l += tl.load(linm + j, mask=m, other=0)
    tl.store(linm + j, l, mask=m)
    if pid == 0:
        if FIRST:
            tl.store(ntot, c)
        else:
            d = tl.load(tot)
            tl.store(ntot, tl.where(d == 1, c, d))


@triton.jit(do_not_specialize=["n"])
def _mcount(mask, bc, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = (tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int64)
    tl.store(bc + p, tl.sum(v, 0))


@triton.jit(do_not_specialize=["n"])
def _mscan(bc, cnt, n, BLOCK: tl.constexpr):
    carry = tl.zeros((1,), tl.int64)
    for b in range(0, n, BLOCK):
        c = b + tl.arange(0, BLOCK)
        v = tl.load(bc + c, mask=c < n, other=0)
        tl.store(bc + c, carry + tl.cumsum(v, 0) - v, mask=c < n)
        carry += tl.sum(v, 0)
    tl.store(cnt + tl.arange(0, 1), carry)


@triton.jit(do_not_specialize=["n"])
def _mpos(mask, bc, pos, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = (tl.load(mask + i, mask=i < n, other=0) != 0).to(tl.int64)
    r = tl.load(bc + p) + tl.cumsum(v, 0) - v
    tl.store(pos + r, i, mask=v != 0)


@triton.jit
def _boff(b, e1, e2, e3, e4, v0, v1, v2, v3, v4, BND: tl.constexpr):
    if BND == 1:
        o = b * v4
    else:
        j4 = b % e4
        q = b // e4
        j3 = q % e3
        q = q // e3
        j2 = q % e2
        q = q // e2
        j1 = q % e1
        j0 = q // e1
        o = j0 * v0 + j1 * v1 + j2 * v2 + j3 * v3 + j4 * v4
    return o


@triton.jit
def _roff(r, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5, RND: tl.constexpr):
    if RND == 1:
        o = r * x5
    else:
        j5 = r % r5
        q = r // r5
        j4 = q % r4
        q = q // r4
        j3 = q % r3
        q = q // r3
        j2 = q % r2
        q = q // r2
        j1 = q % r1
        j0 = q // r1
        o = j0 * x0 + j1 * x1 + j2 * x2 + j3 * x3 + j4 * x4 + j5 * x5
    return o


@triton.jit(do_not_specialize=["T", "R", "e1", "e2", "e3", "e4", "r1", "r2", "r3", "r4", "r5",
                               "v0", "v1", "v2", "v3", "v4", "x0", "x1", "x2", "x3", "x4", "x5",
                               "y0", "y1", "y2", "y3", "y4", "y5"])
def _putg(s, v, lin, key, T, R, e1, e2, e3, e4, v0, v1, v2, v3, v4, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5,
          y0, y1, y2, y3, y4, y5, BLOCK: tl.constexpr):
    # x: strides of self, y: of values over what is not indexed
    t = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = t < T
    b = t // R
    r = t % R
    ok = m & (tl.load(key + b, mask=m, other=-1) >= 0)
    so = tl.load(lin + b, mask=ok, other=0) + _roff(r, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5, 6)
    vo = _boff(b, e1, e2, e3, e4, v0, v1, v2, v3, v4, 5) + _roff(r, r1, r2, r3, r4, r5, y0, y1, y2, y3, y4, y5, 6)
    tl.store(s + so, tl.load(v + vo, mask=ok), mask=ok)


@triton.jit(do_not_specialize=["nO", "R", "e1", "e2", "e3", "e4", "r1", "r2", "r3", "r4", "r5", "vj",
                               "v0", "v1", "v2", "v3", "v4", "x0", "x1", "x2", "x3", "x4", "x5",
                               "y0", "y1", "y2", "y3", "y4", "y5"])
def _putm(s, v, lino, linm, cnt, nO, R, vj, e1, e2, e3, e4, v0, v1, v2, v3, v4, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5,
          y0, y1, y2, y3, y4, y5, BLOCK: tl.constexpr):
    # every pair of group b of numbers and position j of the masks, as many as there are
    X = tl.load(cnt) * R
    T = X * nO
    t0 = tl.program_id(0).to(tl.int64) * BLOCK
    while t0 < T:
        t = t0 + tl.arange(0, BLOCK)
        m = t < T
        b = t // X
        x = t % X
        j = x // R
        r = x % R
        so = tl.load(lino + b, mask=m, other=0) + tl.load(linm + j, mask=m, other=0)
        so += _roff(r, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5, 6)
        vo = _boff(b, e1, e2, e3, e4, v0, v1, v2, v3, v4, 5) + j * vj
        vo += _roff(r, r1, r2, r3, r4, r5, y0, y1, y2, y3, y4, y5, 6)
        tl.store(s + so, tl.load(v + vo, mask=m), mask=m)
        t0 += tl.num_programs(0).to(tl.int64) * BLOCK


@triton.jit(do_not_specialize=["nO", "R", "D", "vj", "e1", "e2", "e3", "e4", "r1", "r2", "r3", "r4", "r5",
                               "v0", "v1", "v2", "v3", "v4", "x0", "x1", "x2", "x3", "x4", "x5",
                               "y0", "y1", "y2", "y3", "y4", "y5"])
def _accm(s, v, lino, sk, sp, linm, cnt, nO, R, D, vj, e1, e2, e3, e4, v0, v1, v2, v3, v4, r1, r2, r3, r4, r5,
          x0, x1, x2, x3, x4, x5, y0, y1, y2, y3, y4, y5, ADT: tl.constexpr, ISB: tl.constexpr,
          CH: tl.constexpr, BC: tl.constexpr):
    # no two positions of the masks are the same: only the groups of numbers can repeat
    X = tl.load(cnt) * R
    nx = (X + BC - 1) // BC
    T = nx * nO
    t = tl.program_id(0).to(tl.int64)
    while t < T:
        p = t // nx
        kc = tl.load(sk + p)
        kp = tl.load(sk + p - 1, mask=p > 0, other=-1)
        start = (kc != kp) & (kc < D)
        x = (t % nx) * BC + tl.arange(0, BC)
        mx = x < X
        j = x // R
        r = x % R
        vo = j * vj + _roff(r, r1, r2, r3, r4, r5, y0, y1, y2, y3, y4, y5, 6)
        acc = tl.zeros((BC,), ADT)
        q = p
        go = start.to(tl.int32)
        while go > 0:
            qq = q + tl.arange(0, CH)
            mk = tl.load(sk + qq, mask=qq < nO, other=-1) == kc
            bb = tl.load(sp + qq, mask=mk, other=0)
            bo = _boff(bb, e1, e2, e3, e4, v0, v1, v2, v3, v4, 5)
            y = tl.load(v + bo[:, None] + vo[None, :], mask=mk[:, None] & mx[None, :], other=0)
            acc += tl.sum(y.to(ADT), 0)
            q += CH
            go = (tl.sum(mk.to(tl.int32), 0) == CH).to(tl.int32)
        if start:
            so = tl.load(lino + tl.load(sp + p)) + tl.load(linm + j, mask=mx, other=0)
            ptr = s + so + _roff(r, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5, 6)
            z = tl.load(ptr, mask=mx, other=0).to(ADT) + acc
            if ISB:
                z = (z != 0).to(tl.uint8)
            tl.store(ptr, z.to(s.dtype.element_ty), mask=mx)
        t += tl.num_programs(0)


# stable radix sort of (key, position), four bits at a time

@triton.jit(do_not_specialize=["D", "shift"])
def _shist(keys, hist, n, NB, D, shift, FIRST: tl.constexpr, B: tl.constexpr):
    blk = tl.program_id(0)
    c = blk.to(tl.int64) * B + tl.arange(0, B)
    m = c < n
    k = tl.load(keys + c, mask=m, other=0)
    if FIRST:
        k = tl.where(k < 0, D, k)
    d = ((k >> shift) & 15).to(tl.int32)
    d = tl.where(m, d, 16)
    h = tl.histogram(d, 32)
    j = tl.arange(0, 32)
    tl.store(hist + j * NB + blk, h.to(tl.int32), mask=j < 16)


@triton.jit
def _sscan(hist, L, BLOCK: tl.constexpr):
    carry = tl.zeros((1,), tl.int32)
    for b in range(0, L, BLOCK):
        c = b + tl.arange(0, BLOCK)
        m = c < L
        v = tl.load(hist + c, mask=m, other=0)
        tl.store(hist + c, carry + tl.cumsum(v, 0) - v, mask=m)
        carry += tl.sum(v, 0)


@triton.jit(do_not_specialize=["D", "shift"])
def _sscat(keys, idx, okeys, oidx, hist, n, NB, D, shift, FIRST: tl.constexpr, B: tl.constexpr):
    blk = tl.program_id(0)
    c = blk.to(tl.int64) * B + tl.arange(0, B)
    m = c < n
    k = tl.load(keys + c, mask=m, other=0)
    if FIRST:
        k = tl.where(k < 0, D, k)
        i = c
    else:
        i = tl.load(idx + c, mask=m, other=0)
    d = ((k >> shift) & 15).to(tl.int32)
    w = d >> 2
    sh = ((d & 3) * 16).to(tl.int64)
    one = (sh * 0 + 1) << sh
    rank = sh * 0
    for q in tl.static_range(4):
        t = tl.where(m & (w == q), one, 0)
        u = tl.cumsum(t, 0)
        rank = tl.where(w == q, ((u >> sh) & 65535) - 1, rank)
    pos = tl.load(hist + d * NB + blk, mask=m, other=0) + rank
    tl.store(okeys + pos, k, mask=m)
    tl.store(oidx + pos, i, mask=m)


@triton.jit(do_not_specialize=["D", "n", "e1", "e2", "e3", "e4", "r1", "r2", "r3", "r4", "r5",
                               "v0", "v1", "v2", "v3", "x0", "x1", "x2", "x3", "x4", "y0", "y1", "y2", "y3", "y4"])
def _acc(s, v, lin, sk, sp, n, R, nrb, D, e1, e2, e3, e4, v0, v1, v2, v3, v4, r1, r2, r3, r4, r5,
         x0, x1, x2, x3, x4, x5, y0, y1, y2, y3, y4, y5, ADT: tl.constexpr, ISB: tl.constexpr,
         BND: tl.constexpr, RND: tl.constexpr, CH: tl.constexpr, BC: tl.constexpr):
    # the program of the first of equal keys adds up all of them, in their order
    pid = tl.program_id(0)
    p = (pid // nrb).to(tl.int64)
    kc = tl.load(sk + p)
    kp = tl.load(sk + p - 1, mask=p > 0, other=-1)
    start = (kc != kp) & (kc < D)
    r = (pid % nrb).to(tl.int64) * BC + tl.arange(0, BC)
    mr = r < R
    so = _roff(r, r1, r2, r3, r4, r5, x0, x1, x2, x3, x4, x5, RND)
    vo = _roff(r, r1, r2, r3, r4, r5, y0, y1, y2, y3, y4, y5, RND)
    acc = tl.zeros((BC,), ADT)
    q = p
    go = start.to(tl.int32)
    while go > 0:
        qq = q + tl.arange(0, CH)
        mk = tl.load(sk + qq, mask=qq < n, other=-1) == kc
        bb = tl.load(sp + qq, mask=mk, other=0)
        bo = _boff(bb, e1, e2, e3, e4, v0, v1, v2, v3, v4, BND)
        x = tl.load(v + bo[:, None] + vo[None, :], mask=mk[:, None] & mr[None, :], other=0)
        acc += tl.sum(x.to(ADT), 0)
        q += CH
        go = (tl.sum(mk.to(tl.int32), 0) == CH).to(tl.int32)
    if start:
        b0 = tl.load(sp + p)
        ptr = s + tl.load(lin + b0) + so
        y = tl.load(ptr, mask=mr, other=0).to(ADT) + acc
        if ISB:
            y = (y != 0).to(tl.uint8)
        tl.store(ptr, y.to(s.dtype.element_ty), mask=mr)


def _positions(t):
    # of the true elements of a mask, and how many, both on the device
    t = t.contiguous().view(torch.uint8)
    n = t.numel()
    dev = t.device
    BLOCK = 2048
    nb = triton.cdiv(n, BLOCK)
    bc = torch.empty((nb,), dtype=torch.int64, device=dev)
    cnt = torch.empty((1,), dtype=torch.int64, device=dev)
    pos = torch.empty((n,), dtype=torch.int64, device=dev)
    _mcount[(nb,)](t, bc, n, BLOCK=BLOCK, num_warps=4)
    _mscan[(1,)](bc, cnt, nb, BLOCK=min(2048, _np2(nb)), num_warps=4)
    _mpos[(nb,)](t, bc, pos, n, BLOCK=BLOCK, num_warps=4)
    return pos, cnt


def _adt(dt):
    if dt == torch.float64:
        return tl.float64
    return tl.float32 if dt.is_floating_point else tl.int64


def _sorted(key, n, D):
    # equal keys side by side, and where they were
    dev = key.device
    SB = 1024
    NB = triton.cdiv(n, SB)
    hist = torch.empty((16 * NB,), dtype=torch.int32, device=dev)
    passes = (max(1, int(D).bit_length()) + 3) // 4
    buf = [(torch.empty((n,), dtype=torch.int64, device=dev), torch.empty((n,), dtype=torch.int64, device=dev))
           for _ in range(min(2, passes))]
    ck, ci = key, key
    for p in range(passes):
        nk, ni = buf[p % 2]
        _shist[(NB,)](ck, hist, n, NB, D, 4 * p, FIRST=p == 0, B=SB, num_warps=4)
        _sscan[(1,)](hist, 16 * NB, BLOCK=min(4096, _np2(16 * NB)), num_warps=4)
        _sscat[(NB,)](ck, ci, nk, ni, hist, n, NB, D, 4 * p, FIRST=p == 0, B=SB, num_warps=4)
        ck, ci = nk, ni
    return ck, ci


def _fit(dims, sts, k):
    # dims and strides in front of which 1s are put until they are k
    pad = k - len(dims)
    return [1] * pad + dims, [[0] * pad + [x[i] for x in sts] for i in range(len(sts[0]))]


def _lin_int(lin, key, t, B, s, a, first):
    te = t.expand(B)
    bd, bs = _coalesce(list(B), [list(te.stride())], False)
    if len(bd) > 5:
        te = te.contiguous()
        bd, bs = _coalesce(list(B), [list(te.stride())], False)
    e, (st,) = _fit(bd, bs, 5)
    n = _prod(B)
    _lin_i[(triton.cdiv(n, 512),)](lin, key, te, n, *e[1:], *st, int(s.shape[a]), int(s.stride(a)), FIRST=first,
                                   BLOCK=512, num_warps=4)


def _mask_dims(t, s, a, c):
    md, mst = _coalesce(list(t.shape), [[int(s.stride(a + k)) for k in range(c)]], False)
    f, (ws,) = _fit(md, mst, 6)
    return f[1:] + ws


def index_put_(self, indices, values, accumulate=False):
    if self.numel() == 0 or values.numel() == 0:
        return self
    s, v = self, _plain(values)
    isb = s.dtype == torch.bool
    if s.is_complex():
        s, v = torch.view_as_real(s), torch.view_as_real(v)
    elif isb:
        s, v = s.view(torch.uint8), v.view(torch.uint8)
    if not accumulate:
        # bits are moved
        dt = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[s.element_size()]
        s, v = s.view(dt), v.view(dt)
    nd = self.dim()
    items, d = [], 0
    for t in indices:
        if t is None:
            d += 1
        elif t.dtype == torch.bool or t.dtype == torch.uint8:
            items.append((True, t, d, t.dim()))
            d += t.dim()
        else:
            items.append((False, t, d, 1))
            d += 1
    idx = [k for _, _, a, c in items for k in range(a, a + c)]
    adjacent = bool(idx) and idx == list(range(idx[0], idx[0] + len(idx)))
    first = idx[0] if adjacent else 0
    before = [k for k in range(s.dim()) if k not in idx and k < first]
    after = [k for k in range(s.dim()) if k not in idx and k >= first]
    masks = [it for it in items if it[0]]
    ints = [it for it in items if not it[0]]
    if any(it[1].numel() == 0 for it in items):
        return self
    BO = tuple(int(x) for x in torch.broadcast_shapes(*[it[1].shape for it in ints])) if ints else ()
    B, dyn, sep = BO, False, False
    if masks and (not BO or BO[-1] == 1):
        # the numbers do not depend on the dimension of the masks' positions, which has as many entries
        # as only the device knows: values have one for all of them (dyn), or one for each
        sep = True
        na = len(after)
        vs = int(v.shape[v.dim() - na - 1]) if v.dim() > na else 1
        dyn = vs == 1
        B = tuple(BO[:-1]) + (vs,)
    nB = _prod(B)
    final = [int(s.shape[k]) for k in before] + list(B) + [int(s.shape[k]) for k in after]
    if nB == 0 or _prod(final) == 0:
        return self
    while v.dim() > len(final) and v.shape[0] == 1:
        v = v.squeeze(0)
    ve = v.expand(final)
    vst = list(ve.stride())
    nbf = len(before)
    vB = vst[nbf:nbf + len(B)]
    rest = before + after
    vR = vst[:nbf] + vst[nbf + len(B):]
    rshape = [int(s.shape[k]) for k in rest]
    sR = [int(s.stride(k)) for k in rest]

    # one mask and values that do not ask how often it is true
    if len(items) == 1 and dyn:
        _, t, a, c = items[0]
        t = t.view(torch.uint8) if t.dtype == torch.bool else t
        ms = [0] * s.dim()
        vs_ = [0] * s.dim()
        for k in range(c):
            ms[a + k] = int(t.stride(k))
        for k, st in zip(rest, vR):
            vs_[k] = int(st)
        ss = [int(x) for x in s.stride()]
        dims, sts = _coalesce(list(s.shape), [ss, ms, vs_, ss])
        _k_go(s, [t, v, s], dims, sts, (), {"ACC": bool(accumulate), "ADT": _adt(s.dtype), "ISB": isb})
        return self

    dev = s.device
    rd, rs = _coalesce(rshape, [sR, vR])
    R = _prod(rd)

    # up to three tensors of numbers, all of it in one piece
    if not masks and 1 <= len(items) <= 3 and len(rd) == 1:
        D = _prod([s.shape[it[2]] for it in items])
        ts = [it[1].expand(B) for it in items]
        bd, bs = _coalesce(list(B), [vB] + [list(t.stride()) for t in ts], False)
        if len(bd) == 1 and (not accumulate or (R >= 64 and nB <= 65536 and D <= 4194304)):
            K = len(items)
            ts = ts + [ts[0]] * (3 - K)
            tb = [bs[0][1 + k] if k < K else 0 for k in range(3)]
            n = [int(s.shape[it[2]]) for it in items] + [1] * (3 - K)
            z = [int(s.stride(it[2])) for it in items] + [0] * (3 - K)
            if accumulate:
                head = torch.full((D,), -1, dtype=torch.int32, device=dev)
                nxt = torch.empty((nB,), dtype=torch.int32, device=dev)
                _link[(triton.cdiv(nB, 128),)](head, nxt, *ts, nB, *n, *tb, K=K, BLOCK=128, num_warps=4)
                BR = min(_np2(R), 1024)
                nrb = triton.cdiv(R, BR)
                _accl[(nB * nrb,)](s, v, head, nxt, *ts, R, nrb, *n, *z, *tb, bs[0][0], rs[0][0], rs[0][1], K=K,
                                   ADT=_adt(s.dtype), ISB=isb, BR=BR, num_warps=4 if BR >= 512 else 2)
            elif R == 1:
                BLOCK = 128 if nB <= 65536 else 512
                _put1[(triton.cdiv(nB, BLOCK),)](s, v, *ts, nB, *n, *z, *tb, bs[0][0], K=K, BLOCK=BLOCK, num_warps=4)
            else:
                BR = min(_np2(R), 2048 if s.element_size() <= 2 else 1024)
                BB = min(max(1, 1024 // BR), _np2(nB))
                nrb = triton.cdiv(R, BR)
                _put[(triton.cdiv(nB, BB) * nrb,)](s, v, *ts, nB, R, nrb, *n, *z, *tb, bs[0][0], rs[0][0], rs[0][1],
                                                   K=K, BB=BB, BR=BR, num_warps=4)
            return self

    # general: where each group of numbers leads, then the elements
    O = B[:-1] if sep else B
    nO = _prod(O)
    bd, bs = _coalesce(list(O), [vB[:len(O)]], False)
    if len(bd) > 5 or len(rd) > 6:
        v = ve.contiguous()
        vst = list(v.stride())
        vB = vst[nbf:nbf + len(B)]
        vR = vst[:nbf] + vst[nbf + len(B):]
        bd, bs = _coalesce(list(O), [vB[:len(O)]], False)
        rd, rs = _coalesce(rshape, [sR, vR])
    e, (eb,) = _fit(bd, bs, 5)
    rr, (xs, ys) = _fit(rd, rs, 6)

    if not items or (sep and not ints):
        lin = torch.zeros((nO,), dtype=torch.int64, device=dev)
        key = torch.zeros((nO,), dtype=torch.int64, device=dev)
    else:
        lin = torch.empty((nO,), dtype=torch.int64, device=dev)
        key = torch.empty((nO,), dtype=torch.int64, device=dev)
    D, one = 1, True
    for ism, t, a, c in (ints if sep else items):
        if ism:
            pos, cnt = _positions(t)
            size = int(t.numel())
            _lin_m[(triton.cdiv(nB, 512),)](lin, key, pos, cnt, nB, int(B[-1]), *_mask_dims(t, s, a, c), size, FIRST=one,
                                            BLOCK=512, num_warps=4)
        else:
            size = int(s.shape[a])
            if sep:
                # the dimension of the positions is the last one, if there is any
                t = t.squeeze(-1) if t.dim() else t
            _lin_int(lin, key, t, O, s, a, one)
        D *= size
        one = False

    if sep:
        cap = max(int(it[1].numel()) for it in masks)
        linm = torch.empty((cap,), dtype=torch.int64, device=dev)
        tot = linm
        for k, (_, t, a, c) in enumerate(masks):
            pos, cnt = _positions(t)
            new = torch.empty((1,), dtype=torch.int64, device=dev)
            _lin_j[(triton.cdiv(cap, 512),)](linm, tot, new, pos, cnt, cap, *_mask_dims(t, s, a, c), FIRST=k == 0,
                                             BLOCK=512, num_warps=4)
            tot = new
        vj = 0 if dyn else int(vB[-1])
        most = cap if dyn else int(B[-1])
        if not accumulate:
            grid = (min(triton.cdiv(nO * most * R, 512), 8192),)
            _putm[grid](s, v, lin, linm, tot, nO, R, vj, *e[1:], *eb, *rr[1:], *xs, *ys, BLOCK=512, num_warps=4)
            return self
        sk, sp = _sorted(key, nO, D)
        BC = min(512, _np2(most * R))
        grid = (min(nO * triton.cdiv(most * R, BC), 8192),)
        _accm[grid](s, v, lin, sk, sp, linm, tot, nO, R, D, vj, *e[1:], *eb, *rr[1:], *xs, *ys, ADT=_adt(s.dtype),
                    ISB=isb, CH=max(4, min(_np2(nO), 1024 // BC)), BC=BC, num_warps=4)
        return self

    if not accumulate:
        T = nB * R
        _putg[(triton.cdiv(T, 512),)](s, v, lin, key, T, R, *e[1:], *eb, *rr[1:], *xs, *ys, BLOCK=512, num_warps=4)
        return self
    # equal keys side by side: the same order of adding each time
    sk, sp = _sorted(key, nB, D)
    if R >= 512:
        BC, CH = 512, 4
    else:
        BC = _np2(R)
        CH = max(4, 1024 // BC)
    nrb = triton.cdiv(R, BC)
    _acc[(nB * nrb,)](s, v, lin, sk, sp, nB, R, nrb, D, *e[1:], *eb, *rr[1:], *xs, *ys, ADT=_adt(s.dtype), ISB=isb,
                      BND=len(bd), RND=len(rd), CH=CH, BC=BC, num_warps=4)
    return self
