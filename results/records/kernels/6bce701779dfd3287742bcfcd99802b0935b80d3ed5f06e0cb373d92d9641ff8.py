import torch
import triton
import triton.language as tl


# kinds: 0 uint8 / bool, 1 int16, 2 int32, 3 int64, 4 16-bit float as int16, 5 float32 as int32, 6 float64 as int64

@triton.jit
def _enc(x, KIND: tl.constexpr, DESC: tl.constexpr, INF: tl.constexpr, MAXP: tl.constexpr):
    # a signed number that sorts as the element does: int32, or int64 for 64-bit elements
    if KIND == 0:
        k = x.to(tl.int32)
        if DESC:
            k = 255 - k
    else:
        if KIND == 1:
            k = x.to(tl.int32)
        elif KIND == 2 or KIND == 3:
            k = x
        else:
            if KIND == 4:
                b = x.to(tl.int32)
            else:
                b = x
            a = b & MAXP
            k = tl.where(b < 0, 0 - a, a)
            k = tl.where(a > INF, MAXP, k)
        if DESC:
            k = -1 - k
    return k


@triton.jit
def _dec(k, KIND: tl.constexpr, DESC: tl.constexpr, MAXP: tl.constexpr):
    if KIND == 0:
        if DESC:
            k = 255 - k
        x = k
    else:
        if DESC:
            k = -1 - k
        if KIND <= 3:
            x = k
        else:
            x = tl.where(k < 0, (0 - k) | (-1 - MAXP), k)
    return x


@triton.jit(do_not_specialize=["M", "d1", "a0", "a1"])
def _small(x, ov, oi, M, N, d1, a0, a1, sn, KIND: tl.constexpr, DESC: tl.constexpr, INF: tl.constexpr,
           MAXP: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    base = (r // d1) * a0 + (r % d1) * a1
    v = tl.load(x + base[:, None] + (c.to(tl.int64) * sn)[None, :], mask=m, other=0)
    k = _enc(v, KIND, DESC, INF, MAXP)
    if WIDE:
        p = (k.to(tl.int64) << 32) | c[None, :].to(tl.int64)
        p = tl.where(m, p, 9223372036854775807)
        p = tl.sort(p)
        i = p & 4294967295
        k = (p >> 32).to(tl.int32)
    else:
        p = (k << 16) | c[None, :]
        p = tl.where(m, p, 2147483647)
        p = tl.sort(p)
        i = (p & 65535).to(tl.int64)
        k = p >> 16
    y = _dec(k, KIND, DESC, MAXP)
    off = r[:, None] * N + c[None, :]
    tl.store(ov + off, y.to(ov.dtype.element_ty), mask=m)
    tl.store(oi + off, i, mask=m)


# Longer rows: runs of 64 elements are sorted, where there is an index aside by counting for each element how many come before
# it, then two or four runs are merged at a time, also by counting: binary searches tell how many elements of the others come before. Keys have 64
# bits: a 32-bit one above its index, or, with PAIR, one of 64 bits, and the index in a memory of its own.


@triton.jit
def _out(ov, oi, at, k, c, m, PAIR: tl.constexpr, KIND: tl.constexpr, DESC: tl.constexpr, MAXP: tl.constexpr):
    if PAIR:
        i = c.to(tl.int64)
    else:
        i = k & 4294967295
        k = (k >> 32).to(tl.int32)
    tl.store(ov + at, _dec(k, KIND, DESC, MAXP).to(ov.dtype.element_ty), mask=m)
    tl.store(oi + at, i, mask=m)


@triton.jit(do_not_specialize=["M", "N", "NG", "d1", "a0", "a1", "sn"])
def _runs(x, ok, oj, ov, oi, M, N, NG, d1, a0, a1, sn, LAST: tl.constexpr, PAIR: tl.constexpr, KIND: tl.constexpr,
          DESC: tl.constexpr, INF: tl.constexpr, MAXP: tl.constexpr, G: tl.constexpr, S: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // NG).to(tl.int64)
    xr = x + ((row // d1) * a0 + (row % d1) * a1)
    c0 = (pid % NG) * (G * S)
    if PAIR:
        # G is 1
        c = c0 + tl.arange(0, S)
        m = c < N
        k = _enc(tl.load(xr + c.to(tl.int64) * sn, mask=m, other=0), KIND, DESC, INF, MAXP)
        k = tl.where(m, k, 9223372036854775807)
        b = k[:, None]
        a = k[None, :]
        before = (b < a) | ((b == a) & (c[:, None] < c[None, :]))
        at = row * N + (c0 + tl.sum(before.to(tl.int32), axis=0))
    else:
        c = c0 + (tl.arange(0, G) * S)[:, None] + tl.arange(0, S)[None, :]
        m = c < N
        k = _enc(tl.load(xr + c.to(tl.int64) * sn, mask=m, other=0), KIND, DESC, INF, MAXP)
        k = (k.to(tl.int64) << 32) | c.to(tl.int64)
        k = tl.sort(tl.where(m, k, 9223372036854775807))
        at = row * N + c
    if LAST:
        _out(ov, oi, at, k, c, m, PAIR, KIND, DESC, MAXP)
    else:
        tl.store(ok + at, k, mask=m)
        if PAIR:
            tl.store(oj + at, c, mask=m)


@triton.jit
def _step(keys, key, cnt, step, start, length, first, PAIR: tl.constexpr):
    # one step of a search in the run at start: first where what is equal there comes first
    cand = cnt + step
    ok = cand <= length
    v = tl.load(keys + (start + cand - 1), mask=ok)
    less = v < key
    if PAIR:
        less = less | ((v == key) & first)
    return tl.where(ok & less, cand, cnt)


@triton.jit
def _half(p, key, cnt, length, first, PAIR: tl.constexpr):
    # the same where length is one number: what is left to search is halved
    h = length >> 1
    v = tl.load(p + (tl.maximum(h, 1) - 1) + cnt)
    less = v < key
    if PAIR:
        less = less | ((v == key) & first)
    return tl.where(less, cnt + h, cnt), length - h


@triton.jit
def _end(p, key, cnt, n, first, PAIR: tl.constexpr):
    v = tl.load(p + cnt)
    less = v < key
    if PAIR:
        less = less | ((v == key) & first)
    return tl.where(n > 0, cnt + less.to(tl.int32), 0)


@triton.jit(do_not_specialize=["N", "NB", "ls"])
def _merge(keys, idx, okeys, oidx, ov, oi, N, NB, ls, W: tl.constexpr, ONE: tl.constexpr, LAST: tl.constexpr,
           PAIR: tl.constexpr, KIND: tl.constexpr, DESC: tl.constexpr, MAXP: tl.constexpr, B: tl.constexpr):
    # runs of 2**ls elements to runs of W times as many
    pid = tl.program_id(0)
    rb = (pid // NB).to(tl.int64) * N
    c = (pid % NB) * B + tl.arange(0, B)
    m = c < N
    keys += rb
    key = tl.load(keys + c, mask=m, other=0)
    j = c
    if PAIR:
        j = tl.load(idx + rb + c, mask=m, other=0)
    if ONE:
        # all of this program in one run
        run = ((pid % NB) * B) >> ls
        a = run & (W - 1)
        r0 = run - a
        b1 = a ^ 1
        s1 = (r0 + b1) << ls
        n1 = tl.minimum(tl.maximum(N - s1, 0), (run * 0 + 1) << ls)
        p1 = keys + tl.where(n1 > 0, s1, 0)
        l1 = n1
        c1 = c * 0
        if W == 4:
            b2 = a ^ 2
            s2 = (r0 + b2) << ls
            n2 = tl.minimum(tl.maximum(N - s2, 0), (run * 0 + 1) << ls)
            p2 = keys + tl.where(n2 > 0, s2, 0)
            l2 = n2
            c2 = c * 0
            b3 = a ^ 3
            s3 = (r0 + b3) << ls
            n3 = tl.minimum(tl.maximum(N - s3, 0), (run * 0 + 1) << ls)
            p3 = keys + tl.where(n3 > 0, s3, 0)
            l3 = n3
            c3 = c * 0
            for _ in range(0, ls):
                c1, l1 = _half(p1, key, c1, l1, b1 < a, PAIR)
                c2, l2 = _half(p2, key, c2, l2, b2 < a, PAIR)
                c3, l3 = _half(p3, key, c3, l3, b3 < a, PAIR)
            c1 = (_end(p1, key, c1, n1, b1 < a, PAIR) + _end(p2, key, c2, n2, b2 < a, PAIR)
                  + _end(p3, key, c3, n3, b3 < a, PAIR))
        else:
            for _ in range(0, ls):
                c1, l1 = _half(p1, key, c1, l1, b1 < a, PAIR)
            c1 = _end(p1, key, c1, n1, b1 < a, PAIR)
    else:
        run = c >> ls
        a = run & (W - 1)
        r0 = run - a
        size = (c * 0 + 1) << ls
        b1 = a ^ 1
        s1 = (r0 + b1) << ls
        n1 = tl.minimum(tl.maximum(N - s1, 0), size)
        c1 = c * 0
        step = size
        if W == 4:
            b2 = a ^ 2
            s2 = (r0 + b2) << ls
            n2 = tl.minimum(tl.maximum(N - s2, 0), size)
            c2 = c * 0
            b3 = a ^ 3
            s3 = (r0 + b3) << ls
            n3 = tl.minimum(tl.maximum(N - s3, 0), size)
            c3 = c * 0
            for _ in range(0, ls + 1):
                c1 = _step(keys, key, c1, step, s1, n1, b1 < a, PAIR)
                c2 = _step(keys, key, c2, step, s2, n2, b2 < a, PAIR)
                c3 = _step(keys, key, c3, step, s3, n3, b3 < a, PAIR)
                step = step >> 1
            c1 = c1 + c2 + c3
        else:
            for _ in range(0, ls + 1):
                c1 = _step(keys, key, c1, step, s1, n1, b1 < a, PAIR)
                step = step >> 1
    # its place in its own run, too
    at = rb + ((r0 << ls) + (c - (run << ls)) + c1)
    if LAST:
        _out(ov, oi, at, key, j, m, PAIR, KIND, DESC, MAXP)
    else:
        tl.store(okeys + at, key, mask=m)
        if PAIR:
            tl.store(oidx + at, j, mask=m)


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


# dtype: (kind, integer dtype of the same size, bits of the key, offset)
_D = {
    torch.bool: (0, torch.uint8, 1, 0),
    torch.uint8: (0, torch.uint8, 8, 0),
    torch.int8: (1, torch.int8, 16, 32768),
    torch.int16: (1, torch.int16, 16, 32768),
    torch.int32: (2, torch.int32, 32, -(1 << 31)),
    torch.int64: (3, torch.int64, 64, -(1 << 63)),
    torch.float16: (4, torch.int16, 16, 32768),
    torch.bfloat16: (4, torch.int16, 16, 32768),
    torch.float32: (5, torch.int32, 32, -(1 << 31)),
    torch.float64: (6, torch.int64, 64, -(1 << 63)),
}
_INF = {torch.float16: 0x7C00, torch.bfloat16: 0x7F80, torch.float32: 0x7F800000, torch.float64: 0x7FF0000000000000}
_MAXP = {torch.float16: 0x7FFF, torch.bfloat16: 0x7FFF, torch.float32: 0x7FFFFFFF, torch.float64: 0x7FFFFFFFFFFFFFFF}


def sort_stable(self, *, stable, dim=-1, descending=False):
    x = _plain(self)
    dt = x.dtype
    if x.dim() == 0:
        x1 = x.view(1)
        v, i = sort_stable(x1, stable=stable, dim=0, descending=descending)
        return v.view(()), i.view(())
    if dim < 0:
        dim += x.dim()
    x = x.movedim(dim, -1)
    shape = tuple(x.shape)
    vals = torch.empty(shape, dtype=dt, device=x.device)
    inds = torch.empty(shape, dtype=torch.int64, device=x.device)
    res = (vals.movedim(-1, dim), inds.movedim(-1, dim))
    if vals.numel() == 0:
        return res
    kind, it, bits, off = _D[dt]
    N = int(shape[-1])
    for _ in range(2):
        rest = [int(n) for n in shape[:-1]]
        dims, sts = _coalesce(rest, [list(vals.stride())[:-1], list(x.stride())[:-1]])
        if len(dims) <= 2:
            break
        x = x.contiguous()
    M = _prod(dims)
    d1 = dims[-1]
    a1 = sts[-1][1] if M > 1 else 0
    a0 = sts[0][1] if len(dims) == 2 else 0
    sn = int(x.stride(-1))
    x = x.view(it)
    ov = vals.view(it)
    desc = bool(descending)
    if desc and dt == torch.bool:
        bits = 8
    ce = {"KIND": kind, "DESC": desc, "INF": _INF.get(dt, 0), "MAXP": _MAXP.get(dt, 0)}
    if (bits <= 16 and N <= 2048) or (bits == 32 and N <= 1024):
        BN = max(_np2(N), 16)
        BM = min(max(1, 1024 // BN), _np2(M))
        warps = 4 if BM * BN <= 1024 else 8
        if BM * BN < 128:
            warps = 1
        _small[(triton.cdiv(M, BM),)](x, ov, inds, M, N, d1, a0, a1, sn, **ce, WIDE=bits == 32, BM=BM, BN=BN,
                                      num_warps=warps)
        return res
    pair = bits == 64
    S = 64
    G = 1 if pair else min(8, _np2(triton.cdiv(N, S)))
    levels = _np2(triton.cdiv(N, S)).bit_length() - 1
    dev = x.device
    passes = (levels + 1) // 2
    bufs = []
    for _ in range(min(2, passes)):
        k = torch.empty((M * N,), dtype=torch.int64, device=dev)
        bufs.append((k, torch.empty((M * N,), dtype=torch.int32, device=dev) if pair else k))
    ck, ci = bufs[0] if passes else (inds, inds)
    NG = triton.cdiv(N, G * S)
    _runs[(M * NG,)](x, ck, ci, ov, inds, M, N, NG, d1, a0, a1, sn, LAST=passes == 0, PAIR=pair, **ce, G=G, S=S,
                     num_warps=4)
    B = 512
    NB = triton.cdiv(N, B)
    ls = 6
    for p in range(passes):
        last = p == passes - 1
        lw = 1 if p == 0 and levels % 2 == 1 else 2
        nk, ni = (ck, ci) if last else bufs[(p + 1) % 2]
        _merge[(M * NB,)](ck, ci, nk, ni, ov, inds, N, NB, ls, W=1 << lw, ONE=(1 << ls) >= B, LAST=last, PAIR=pair,
                          KIND=kind, DESC=desc, MAXP=ce["MAXP"], B=B, num_warps=4)
        ls += lw
        ck, ci = nk, ni
    return res
