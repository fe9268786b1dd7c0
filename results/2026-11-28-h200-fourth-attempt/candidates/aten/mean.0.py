import torch
import triton
import triton.language as tl


@triton.jit
def _cast(x, CDT: tl.constexpr, ADT: tl.constexpr):
    if CDT == tl.float16:
        y = x.to(tl.float32).to(tl.float16).to(tl.float32)
    elif CDT == tl.bfloat16:
        y = x.to(tl.float32).to(tl.bfloat16).to(tl.float32)
    elif CDT == tl.float32:
        y = x.to(tl.float32).to(ADT)
    else:
        y = x.to(ADT)
    return y


@triton.jit
def _cast0(x, SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr):
    if SAME:
        y = x.to(ADT)
    else:
        y = _cast(x, CDT, ADT)
    return y


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
        dims, out = [1], [[0] * len(sts)]
    return dims, out


def _np2(n):
    return triton.next_power_of_2(max(int(n), 1))


def _plain(t):
    if t.is_conj():
        t = t.resolve_conj()
    if t.is_neg():
        t = t.resolve_neg()
    return t


@triton.jit(do_not_specialize=["RO", "cro", "nd", "k1", "k2", "k3", "k4", "q1", "q2", "q3"])
def _red(x, o, M, R0, RO, cr, cro, nd, k1, k2, k3, k4, q1, q2, q3,
         s0, s1, s2, s3, s4, t0, t1, t2, t3, t4, u0, u1, u2, u3, sr, ops,
         OTHER: tl.constexpr, MINI: tl.constexpr, LAST: tl.constexpr, SAME: tl.constexpr, CDT: tl.constexpr,
         ADT: tl.constexpr, NANS: tl.constexpr, KND: tl.constexpr, QND: tl.constexpr, INNER: tl.constexpr,
         BM: tl.constexpr, BR: tl.constexpr):
    # s, t: strides of the kept dimensions in x and o; u: of the outer reduced ones; sr: of the inner one
    ps = tl.program_id(1)
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
    if INNER:
        # one outer step, the inner dimension is shared out
        lo = ps.to(tl.int64) * cr
        hi = tl.minimum(lo + cr, R0)
        for r in range(lo, hi, BR):
            c = r + tl.arange(0, BR)
            mk = mm[:, None] & (c < R0)[None, :]
            v = tl.load(x + (xb[:, None] + (c.to(tl.int64) * sr)[None, :]), mask=mk, other=OTHER)
            v = _cast0(v, SAME, CDT, ADT)
            if MINI:
                if NANS:
                    acc = tl.minimum(acc, v, propagate_nan=tl.PropagateNan.ALL)
                else:
                    acc = tl.minimum(acc, v)
            else:
                acc += v
    else:
        lo = ps.to(tl.int64) * cro
        hi = tl.minimum(lo + cro, RO)
        for ro in range(lo, hi):
            g = ps.to(tl.int64) * 0 + ro
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
            for r in range(0, R0, BR):
                c = r + tl.arange(0, BR)
                mk = mm[:, None] & (c < R0)[None, :]
                v = tl.load(x + (base + xb[:, None] + (c.to(tl.int64) * sr)[None, :]), mask=mk, other=OTHER)
                v = _cast0(v, SAME, CDT, ADT)
                if MINI:
                    if NANS:
                        acc = tl.minimum(acc, v, propagate_nan=tl.PropagateNan.ALL)
                    else:
                        acc = tl.minimum(acc, v)
                else:
                    acc += v
    if MINI:
        y = tl.min(acc, 1)
        if NANS:
            bad = tl.max((acc != acc).to(tl.int32), 1)
            y = tl.where(bad > 0, float("nan"), y)
    else:
        y = tl.sum(acc, 1)
        if LAST:
            y = y / nd
    if ADT == tl.float64:
        if o.dtype.element_ty != tl.float64:
            y = y.to(tl.float32)
    tl.store(o + ob + ps * ops, y.to(o.dtype.element_ty), mask=mm)


@triton.jit
def _full(x, o, n, per, nd, LAST: tl.constexpr, SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr,
          EVEN: tl.constexpr, BLOCK: tl.constexpr, U: tl.constexpr):
    # the sum of per neighbouring elements
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * per
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), ADT)
    for b in range(0, per, BLOCK * U):
        for j in tl.static_range(U):
            p = x + (base + b + j * BLOCK)
            if EVEN:
                v = tl.load(p + c, eviction_policy="evict_first")
            else:
                v = tl.load(p + c, mask=c < n - (base + b + j * BLOCK), other=0, eviction_policy="evict_first")
            acc += _cast0(v, SAME, CDT, ADT)
    y = tl.sum(acc, 0)
    if LAST:
        y = y / nd
    if ADT == tl.float64:
        if o.dtype.element_ty != tl.float64:
            y = y.to(tl.float32)
    tl.store(o + pid, y.to(o.dtype.element_ty))


@triton.jit
def _col(x, o, M, R0, per, sr, nd, LAST: tl.constexpr, SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr,
         EM: tl.constexpr, ER: tl.constexpr, U: tl.constexpr, BM: tl.constexpr, BR: tl.constexpr):
    # columns next to one another, summed over rows sr apart; part ps takes per rows
    ps = tl.program_id(1)
    m0 = tl.program_id(0).to(tl.int64) * BM
    c = tl.arange(0, BM)
    r = tl.arange(0, BR)
    mc = c < M - m0
    lo = ps.to(tl.int64) * per
    off = (r.to(tl.int64) * sr)[:, None] + c[None, :]
    acc = tl.zeros((BR, BM), ADT)
    for b in range(0, per, BR * U):
        for j in tl.static_range(U):
            g = lo + b + j * BR
            p = x + (m0 + g * sr)
            if EM and ER:
                v = tl.load(p + off, eviction_policy="evict_first")
            elif EM:
                v = tl.load(p + off, mask=(r < R0 - g)[:, None] & (c >= 0)[None, :], other=0,
                            eviction_policy="evict_first")
            else:
                v = tl.load(p + off, mask=(r < R0 - g)[:, None] & mc[None, :], other=0,
                            eviction_policy="evict_first")
            acc += _cast0(v, SAME, CDT, ADT)
    y = tl.sum(acc, 0)
    if LAST:
        y = y / nd
    if ADT == tl.float64:
        if o.dtype.element_ty != tl.float64:
            y = y.to(tl.float32)
    tl.store(o + ps.to(tl.int64) * M + m0 + c, y.to(o.dtype.element_ty), mask=mc)


def _sumall(x, o, n, cfg, nd):
    # n elements next to one another to one
    kw = dict(SAME=cfg["SAME"], CDT=cfg["CDT"], ADT=cfg["ADT"])
    if n <= 16384:
        BLOCK = max(_np2(n), 128)
        warps = min(16, max(1, BLOCK // 512))
        _full[(1,)](x, o, n, BLOCK, nd, LAST=True, **kw, EVEN=n == BLOCK, BLOCK=BLOCK, U=1, num_warps=warps)
        return
    big = 4096 if x.element_size() <= 2 else (2048 if x.element_size() <= 4 else 1024)
    U = 4
    while U > 1 and n < 1056 * big * U:
        U //= 2
    unit = big * U
    per = max(1, n // (unit * 4096)) * unit
    split = triton.cdiv(n, per)
    part = torch.empty((split,), dtype=cfg["PT"], device=o.device)
    _full[(split,)](x, part, n, per, nd, LAST=False, **kw, EVEN=n == split * per, BLOCK=big, U=U, num_warps=4)
    c2 = dict(cfg)
    c2["SAME"] = True
    _sumall(part, o, split, c2, nd)


def _sumcol(x, o, M, R0, sr, cfg, nd):
    kw = dict(SAME=cfg["SAME"], CDT=cfg["CDT"], ADT=cfg["ADT"])
    es = x.element_size()
    if M >= 1024 and R0 >= 1024:
        BM = 512 if es <= 2 else 256
        BR, U = 8, 2
    else:
        BM, BR, U = 64 if es <= 2 else 32, 64, 1
    mb = triton.cdiv(M, BM)
    units = triton.cdiv(R0, BR * U)
    split = min(units, max(1, 1056 // mb)) if R0 > 1024 else 1
    per = triton.cdiv(units, split) * BR * U
    split = triton.cdiv(R0, per)
    dst = o if split == 1 else torch.empty((split, M), dtype=cfg["PT"], device=o.device)
    _col[(mb, split)](x, dst, M, R0, per, sr, nd, LAST=split == 1, **kw, EM=M % BM == 0, ER=R0 == split * per,
                      U=U, BM=BM, BR=BR, num_warps=4)
    if split > 1:
        c2 = dict(cfg)
        c2["SAME"] = True
        _sumcol(dst, o, M, split, M, c2, nd)


def _contig(dims, k):
    res, s = [], k
    for n in reversed(dims):
        res.append(s)
        s *= n
    return res[::-1]


def _reduce(x, red, o, cfg, nd):
    # x: a real tensor with elements; red: the set of reduced dimensions; o: the kept ones, in order
    kept = [i for i in range(x.dim()) if i not in red]
    redl = [i for i in range(x.dim()) if i in red]
    for _ in range(2):
        kd, ks = _coalesce([x.shape[i] for i in kept], [[x.stride(i) for i in kept], [o.stride(j) for j in range(len(kept))]])
        rd, rs = _coalesce([x.shape[i] for i in redl], [[x.stride(i) for i in redl]])
        if len(kd) <= 5 and len(rd) <= 4:
            break
        x = x.contiguous()
    if len(kd) > 5:
        tmp = torch.empty(tuple(o.shape), dtype=o.dtype, device=o.device)
        _reduce(x, red, tmp, cfg, nd)
        o.copy_(tmp)
        return
    M, R0, RO = _prod(kd), rd[-1], _prod(rd[:-1])
    sr = rs[-1][0]
    if M == 1 and len(rd) == 1 and (sr == 1 or R0 == 1):
        _sumall(x, o, R0, cfg, nd)
        return
    if len(kd) == 1 and len(rd) == 1 and ks[-1] == [1, 1] and M >= 256 and R0 >= 64 and sr > 0:
        _sumcol(x, o, M, R0, sr, cfg, nd)
        return
    if M > 1 and ks[-1][0] < sr:
        BM = min(128, _np2(M))
        BR = min(_np2(R0), max(1, 4096 // BM))
    else:
        BR = min(_np2(R0), 4096)
        BM = min(_np2(M), max(1, 4096 // BR))
        while BM > 1 and triton.cdiv(M, BM) < 264:
            BM //= 2
    prog = triton.cdiv(M, BM)
    inner = RO == 1
    units = triton.cdiv(R0, BR) if inner else RO
    split = 1
    if prog < 528 and units > 1:
        split = min(units, max(1, (1056 if prog < 8 else 2112) // prog))
    per = triton.cdiv(units, split)
    split = triton.cdiv(units, per)
    cr, cro = (per * BR, 1) if inner else (0, per)
    pk, pq = 5 - len(kd), 4 - len(rd)
    kdd = [1] * pk + kd
    qdd = [1] * pq + rd[:-1]
    s = [0] * pk + [v[0] for v in ks]
    u = [0] * pq + [v[0] for v in rs[:-1]]
    if len(qdd) == 3:
        qdd, u = [1] + qdd, [0] + u
    qdd, u = qdd[-3:], ([0] * 4 + u)[-4:]
    last = split == 1
    if last:
        dst, t, ops = o, [0] * pk + [v[1] for v in ks], 0
    else:
        dst = torch.empty((M, split), dtype=cfg["PT"], device=o.device)
        t, ops = [0] * pk + _contig(kd, split), 1
    _red[(prog, split)](x, dst, M, R0, RO, cr, cro, nd, *kdd[1:], *qdd, *s, *t, *u, sr, ops,
                        OTHER=cfg["OTHER"], MINI=cfg["MINI"], LAST=last, SAME=cfg["SAME"], CDT=cfg["CDT"],
                        ADT=cfg["ADT"], NANS=cfg["NANS"], KND=len(kd), QND=max(len(rd) - 1, 1), INNER=inner,
                        BM=BM, BR=BR, num_warps=4)
    if not last:
        # the parts of output m in the order of kd: view them as the kept dimensions again
        part = dst.view(*kd, split) if kd else dst.view(split)
        fo = o.as_strided(tuple(kd), tuple(v[1] for v in ks), o.storage_offset())
        c2 = dict(cfg)
        c2["SAME"] = True
        _reduce(part, {part.dim() - 1}, fo, c2, nd)


_T = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64}


def _mean(x, dim, keepdim, dtype):
    x = _plain(x)
    dt = x.dtype if dtype is None else dtype
    nd = x.dim()
    dims = {int(d) % max(nd, 1) for d in dim} if dim is not None and len(dim) else set(range(nd))
    red = {d for d in dims if d < nd}
    kshape = [int(x.shape[i]) for i in range(nd) if i not in red]
    full = [1 if i in red else int(x.shape[i]) for i in range(nd)]
    out = torch.empty(kshape, dtype=dt, device=x.device)
    n = _prod(x.shape[i] for i in red)
    if out.numel() == 0:
        pass
    elif n == 0:
        out.fill_(complex(float("nan"), float("nan")) if dt.is_complex else float("nan"))
    elif dt.is_complex:
        rt = torch.float64 if dt == torch.complex128 else torch.float32
        o = torch.view_as_real(out)
        if x.is_complex():
            _one(torch.view_as_real(x), red, o, rt, n)
        else:
            o.fill_(0.0)
            _one(x, red, o.select(o.dim() - 1, 0), rt, n)
    else:
        _one(x, red, out, dt, n)
    return out.view(full) if keepdim else out


def _one(x, red, o, dt, n):
    same = x.dtype == dt
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    adt, pt = (tl.float64, torch.float64) if dt == torch.float64 else (tl.float32, torch.float32)
    cfg = {"OTHER": 0, "MINI": False, "SAME": same, "CDT": _T[dt], "ADT": adt, "NANS": False, "PT": pt}
    _reduce(x, red, o, cfg, n)


def mean(self, *, dtype=None):
    return _mean(self, None, False, dtype)


def mean_dim(self, dim, keepdim=False, *, dtype=None):
    return _mean(self, dim, keepdim, dtype)

