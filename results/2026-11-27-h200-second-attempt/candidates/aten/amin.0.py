import torch
import triton
import triton.language as tl


def _prod(xs):
    r = 1
    for v in xs:
        r *= int(v)
    return r


def _bstr(t, shape):
    # strides of t broadcast to shape
    k = len(shape) - t.dim()
    return [0] * k + [0 if t.shape[i] == 1 else int(t.stride(i)) for i in range(t.dim())]


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
def _min2(acc, v, NANS: tl.constexpr):
    if NANS:
        r = tl.minimum(acc, v, propagate_nan=tl.PropagateNan.ALL)
    else:
        r = tl.minimum(acc, v)
    return r


@triton.jit(do_not_specialize=["nck", "per", "units", "k1", "k2", "k3", "k4", "q1", "q2", "q3"])
def _red(x, o, M, R0, nck, per, units, k1, k2, k3, k4, q1, q2, q3,
         s0, s1, s2, s3, s4, t0, t1, t2, t3, t4, u0, u1, u2, u3, sr, ops,
         OTHER: tl.constexpr, ADT: tl.constexpr, NANS: tl.constexpr, KND: tl.constexpr, QND: tl.constexpr,
         INNER: tl.constexpr, BM: tl.constexpr, BR: tl.constexpr):
    # s, t: strides of the kept dimensions in x and o; u: of the outer reduced ones; sr: of the inner one
    # a unit is a stretch of BR elements of the inner reduced dimension: nck of them for each outer step
    ps = tl.program_id(1).to(tl.int64)
    m = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    mm = m < M
    if KND == 1:
        xb = m * s4
        ob = m * t4
    else:
        i4 = m % k4
        q = m // k4
        i3 = q % k3
        q = q // k3
        i2 = q % k2
        q = q // k2
        i1 = q % k1
        i0 = q // k1
        xb = i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3 + i4 * s4
        ob = i0 * t0 + i1 * t1 + i2 * t2 + i3 * t3 + i4 * t4
    acc = tl.full((BM, BR), OTHER, ADT)
    lo = ps * per
    hi = tl.minimum(lo + per, units)
    if INNER:
        # no outer step, the inner dimension is shared out
        for r in range(lo * BR, hi * BR, BR):
            c = r + tl.arange(0, BR)
            mk = mm[:, None] & (c < R0)[None, :]
            v = tl.load(x + (xb[:, None] + (c * sr)[None, :]), mask=mk, other=OTHER)
            acc = _min2(acc, v.to(ADT), NANS)
    else:
        for un in range(lo, hi):
            g = un // nck
            c = (un % nck) * BR + tl.arange(0, BR)
            if QND == 1:
                base = g * u3
            else:
                j3 = g % q3
                h = g // q3
                j2 = h % q2
                h = h // q2
                j1 = h % q1
                j0 = h // q1
                base = j0 * u0 + j1 * u1 + j2 * u2 + j3 * u3
            mk = mm[:, None] & (c < R0)[None, :]
            v = tl.load(x + (base + xb[:, None] + (c * sr)[None, :]), mask=mk, other=OTHER)
            acc = _min2(acc, v.to(ADT), NANS)
    y = tl.min(acc, 1)
    if NANS:
        bad = tl.max((acc != acc).to(tl.int32), 1)
        y = tl.where(bad > 0, float("nan"), y)
    tl.store(o + ob + ps * ops, y.to(o.dtype.element_ty), mask=mm)


def _contig(dims, k):
    res, s = [], k
    for n in reversed(dims):
        res.append(s)
        s *= n
    return res[::-1]


def _reduce(x, red, o, cfg):
    # x: a real tensor with elements; red: the set of reduced dimensions; o: the kept ones, in order
    for _ in range(2):
        kept = [i for i in range(x.dim()) if i not in red]
        # a reduced dimension of stride 0 holds one element again and again
        redl = [i for i in range(x.dim()) if i in red and x.stride(i) != 0]
        kd, ks = _coalesce([x.shape[i] for i in kept], [[x.stride(i) for i in kept], [o.stride(j) for j in range(len(kept))]])
        rd, rs = _coalesce([x.shape[i] for i in redl], [[x.stride(i) for i in redl]])
        if len(kd) <= 5 and len(rd) <= 4:
            break
        if len(kd) > 5:
            tmp = torch.empty(tuple(o.shape), dtype=o.dtype, device=o.device)
            nk = len(kept)
            y = x.permute(kept + [i for i in range(x.dim()) if i in red]).contiguous()
            _reduce(y, set(range(nk, y.dim())), tmp, cfg)
            o.copy_(tmp)
            return
        nk = len(kept)
        x = x.permute(kept + [i for i in range(x.dim()) if i in red]).contiguous()
        red = set(range(nk, x.dim()))
    rs = [v[0] for v in rs]
    if rd[-1] < 32 and max(rd) > rd[-1]:
        # a short inner dimension changes places with the longest one
        w = rd.index(max(rd))
        rd[w], rd[-1] = rd[-1], rd[w]
        rs[w], rs[-1] = rs[-1], rs[w]
    M, R0, RO = _prod(kd), rd[-1], _prod(rd[:-1])
    sr = rs[-1]
    if M > 1 and 0 < ks[-1][0] < sr:
        BM = min(128, _np2(M))
        BR = min(_np2(R0), max(1, 4096 // BM))
    else:
        BR = min(_np2(R0), 4096)
        BM = min(_np2(M), max(1, 4096 // BR))
        while BM > 1 and triton.cdiv(M, BM) < 264:
            BM //= 2
    prog = triton.cdiv(M, BM)
    inner = RO == 1
    nck = triton.cdiv(R0, BR)
    units = nck * RO
    split = 1
    if prog < 528 and units > 1:
        split = min(units, max(1, (1056 if prog < 8 else 2112) // prog))
    per = triton.cdiv(units, split)
    split = triton.cdiv(units, per)
    pk, pq = 5 - len(kd), 4 - len(rd[:-1])
    kdd = [1] * pk + kd
    qdd = ([1] * pq + rd[:-1])[-3:]
    s = [0] * pk + [v[0] for v in ks]
    u = [0] * pq + rs[:-1]
    last = split == 1
    if last:
        dst, t, ops = o, [0] * pk + [v[1] for v in ks], 0
    else:
        dst = torch.empty((M, split), dtype=cfg["PT"], device=o.device)
        t, ops = [0] * pk + _contig(kd, split), 1
    _red[(prog, split)](x, dst, M, R0, nck, per, units, *kdd[1:], *qdd, *s, *t, *u, sr, ops,
                        OTHER=cfg["OTHER"], ADT=cfg["ADT"], NANS=cfg["NANS"], KND=len(kd),
                        QND=max(len(rd) - 1, 1), INNER=inner, BM=BM, BR=BR, num_warps=4)
    if not last:
        # the parts of output m in the order of kd: view them as the kept dimensions again
        part = dst.view(*kd, split)
        fo = o.as_strided(tuple(kd), tuple(v[1] for v in ks), o.storage_offset())
        _reduce(part, {part.dim() - 1}, fo, cfg)


def _do(x, dim, keepdim, out):
    x = _plain(x)
    nd = x.dim()
    dims = {int(d) % max(nd, 1) for d in dim} if len(dim) else set(range(nd))
    red = {d for d in dims if d < nd}
    kshape = [int(x.shape[i]) for i in range(nd) if i not in red]
    full = [1 if i in red else int(x.shape[i]) for i in range(nd)]
    if out is None:
        out = torch.empty(full if keepdim else kshape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    o = out
    if keepdim and nd:
        kst = [out.stride(i) for i in range(nd) if i not in red]
        o = out.as_strided(kshape, kst, out.storage_offset())
    dt = x.dtype
    if dt == torch.bool:
        x, o = x.view(torch.uint8), o.view(torch.uint8)
    fl = dt.is_floating_point
    if fl:
        other = float("inf")
        adt, pt = (tl.float64, torch.float64) if dt == torch.float64 else (tl.float32, torch.float32)
    elif dt == torch.int64:
        other, adt, pt = (1 << 63) - 1, tl.int64, torch.int64
    else:
        other = {torch.bool: 1, torch.uint8: 255, torch.int8: 127, torch.int16: 32767}.get(dt, (1 << 31) - 1)
        adt, pt = tl.int32, torch.int32
    cfg = {"OTHER": other, "ADT": adt, "NANS": fl, "PT": pt}
    _reduce(x, red, o, cfg)
    return out


def amin(self, dim=[], keepdim=False):
    return _do(self, dim, keepdim, None)


def amin_out(self, dim=[], keepdim=False, *, out):
    return _do(self, dim, keepdim, out)

