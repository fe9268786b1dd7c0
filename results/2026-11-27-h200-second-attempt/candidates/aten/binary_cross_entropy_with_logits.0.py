import torch
import triton
import triton.language as tl


@triton.jit
def _expn(x, F64: tl.constexpr):
    # exp(x) for x <= 0 (or NaN), to one or two units in the last place
    if F64:
        y = tl.exp(x)
    else:
        x = tl.where(x < -120.0, -120.0, x)
        t = x * 1.4426950408889634 + 12582976.0
        n = t - 12582976.0
        r = x - n * 0.693359375
        r = r + n * 2.12194440e-4
        e = tl.exp2(r * 1.4426950408889634)
        # times 2 ** (n + 64), then times 2 ** -64
        b = e.to(tl.int32, bitcast=True) + (t.to(tl.int32, bitcast=True) << 23)
        y = b.to(tl.float32, bitcast=True) * 5.421010862427522e-20 + x * 0.0
    return y


@triton.jit
def _sp(a, F64: tl.constexpr):
    # log(1 + exp(-a)) for a >= 0
    e = _expn(0.0 - a, F64)
    u = 1.0 + e
    return tl.log(u) + (e - (u - 1.0))


@triton.jit
def _loss(x, t, w, p, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr):
    x = x.to(ADT)
    t = t.to(ADT)
    l = _sp(tl.abs(x), F64)
    if HP:
        p = p.to(ADT)
        y = (1.0 + (p - 1.0) * t) * l + tl.where(x < 0.0, 0.0 - p * t * x + (x - x), (1.0 - t) * x)
    else:
        y = l + tl.where(x < 0.0, 0.0 - t * x + (x - x), (1.0 - t) * x)
    if HW:
        y = y * w.to(ADT)
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
def _k_flat(o, x0, x1, x2, x3, n, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr, BLOCK: tl.constexpr):
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
    if S3 == 0:
        v3 = tl.broadcast_to(tl.load(x3), (BLOCK,))
    else:
        v3 = tl.load(x3 + i, mask=m, other=0)
    y = _loss(v0, v1, v2, v3, F64, ADT, HW, HP)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["nb", "d1", "d2", "d3"])
def _k_rows(o, x0, x1, x2, x3, N, nb, d1, d2, d3, t0_0, t0_1, t0_2, t0_3, t1_0, t1_1, t1_2, t1_3, t2_0, t2_1, t2_2, t2_3, t3_0, t3_1, t3_2, t3_3, t4_0, t4_1, t4_2, t4_3, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    row = pid.to(tl.int64) // nb
    cb = (pid % nb).to(tl.int64)
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
    b3 = i0 * t4_0 + i1 * t4_1 + i2 * t4_2 + i3 * t4_3
    if S3 == 0:
        v3 = tl.broadcast_to(tl.load(x3 + b3), (BLOCK,))
    else:
        v3 = tl.load(x3 + b3 + c, mask=m, other=0)
    y = _loss(v0, v1, v2, v3, F64, ADT, HW, HP)
    tl.store(o + bo + c, y.to(o.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["n", "d1", "d2", "d3", "d4", "d5", "t0_0", "t0_1", "t0_2", "t0_3", "t0_4", "t0_5", "t1_0", "t1_1", "t1_2", "t1_3", "t1_4", "t1_5", "t2_0", "t2_1", "t2_2", "t2_3", "t2_4", "t2_5", "t3_0", "t3_1", "t3_2", "t3_3", "t3_4", "t3_5", "t4_0", "t4_1", "t4_2", "t4_3", "t4_4", "t4_5"])
def _k_gen(o, x0, x1, x2, x3, n, d1, d2, d3, d4, d5, t0_0, t0_1, t0_2, t0_3, t0_4, t0_5, t1_0, t1_1, t1_2, t1_3, t1_4, t1_5, t2_0, t2_1, t2_2, t2_3, t2_4, t2_5, t3_0, t3_1, t3_2, t3_3, t3_4, t3_5, t4_0, t4_1, t4_2, t4_3, t4_4, t4_5, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr, BLOCK: tl.constexpr):
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
    f3 = i0 * t4_0 + i1 * t4_1 + i2 * t4_2 + i3 * t4_3 + i4 * t4_4 + i5 * t4_5
    v3 = tl.load(x3 + f3, mask=m, other=0)
    y = _loss(v0, v1, v2, v3, F64, ADT, HW, HP)
    tl.store(o + oo, y.to(o.dtype.element_ty), mask=m)


def _k_go(o, ins, dims, sts, ex=(), ce={}):
    n = _prod(dims)
    if n == 0:
        return
    last = sts[-1]
    ok = last[0] == 1 and all(v in (0, 1) for v in last[1:])
    S = {"S%d" % j: last[1 + j] for j in range(4)}
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


def _k_run(o, ins, shape, ex=(), ce={}):
    if _prod(shape) == 0:
        return
    sts = [_bstr(o, shape)] + [_bstr(t, shape) for t in ins]
    dims, st = _coalesce(shape, sts)
    _k_go(o, list(ins), dims, st, ex, ce)


@triton.jit(do_not_specialize=["iters"])
def _k_rflat(p, x0, x1, x2, x3, n, iters, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, S3: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), ADT)
    for t in range(0, iters):
        i = (pid * iters + t) * BLOCK + tl.arange(0, BLOCK)
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
        if S3 == 0:
            v3 = tl.broadcast_to(tl.load(x3), (BLOCK,))
        else:
            v3 = tl.load(x3 + i, mask=m, other=0)
        y = _loss(v0, v1, v2, v3, F64, ADT, HW, HP)
        acc += tl.where(m, y, 0.0)
    tl.store(p + pid, tl.sum(acc, 0))


@triton.jit(do_not_specialize=["n", "iters", "d1", "d2", "d3", "d4", "d5", "t0_0", "t0_1", "t0_2", "t0_3", "t0_4", "t0_5", "t1_0", "t1_1", "t1_2", "t1_3", "t1_4", "t1_5", "t2_0", "t2_1", "t2_2", "t2_3", "t2_4", "t2_5", "t3_0", "t3_1", "t3_2", "t3_3", "t3_4", "t3_5"])
def _k_rgen(p, x0, x1, x2, x3, n, iters, d1, d2, d3, d4, d5, t0_0, t0_1, t0_2, t0_3, t0_4, t0_5, t1_0, t1_1, t1_2, t1_3, t1_4, t1_5, t2_0, t2_1, t2_2, t2_3, t2_4, t2_5, t3_0, t3_1, t3_2, t3_3, t3_4, t3_5, F64: tl.constexpr, ADT: tl.constexpr, HW: tl.constexpr, HP: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), ADT)
    for t in range(0, iters):
        i = (pid * iters + t) * BLOCK + tl.arange(0, BLOCK)
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
        f0 = i0 * t0_0 + i1 * t0_1 + i2 * t0_2 + i3 * t0_3 + i4 * t0_4 + i5 * t0_5
        v0 = tl.load(x0 + f0, mask=m, other=0)
        f1 = i0 * t1_0 + i1 * t1_1 + i2 * t1_2 + i3 * t1_3 + i4 * t1_4 + i5 * t1_5
        v1 = tl.load(x1 + f1, mask=m, other=0)
        f2 = i0 * t2_0 + i1 * t2_1 + i2 * t2_2 + i3 * t2_3 + i4 * t2_4 + i5 * t2_5
        v2 = tl.load(x2 + f2, mask=m, other=0)
        f3 = i0 * t3_0 + i1 * t3_1 + i2 * t3_2 + i3 * t3_3 + i4 * t3_4 + i5 * t3_5
        v3 = tl.load(x3 + f3, mask=m, other=0)
        y = _loss(v0, v1, v2, v3, F64, ADT, HW, HP)
        acc += tl.where(m, y, 0.0)
    tl.store(p + pid, tl.sum(acc, 0))


@triton.jit(do_not_specialize=["np_", "n"])
def _k_fin(p, o, np_, n, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float64)
    for b in range(0, np_, BLOCK):
        c = b + tl.arange(0, BLOCK)
        acc += tl.load(p + c, mask=c < np_, other=0.0).to(tl.float64)
    s = tl.sum(acc, 0)
    if MEAN:
        s = s / n
    if o.dtype.element_ty == tl.float64:
        tl.store(o, s)
    else:
        tl.store(o, s.to(tl.float32).to(o.dtype.element_ty))


def _k_reduce(o, ins, shape, mean, ex=(), ce={}):
    # o: a tensor of one element
    n = _prod(shape)
    if n == 0:
        o.fill_(float("nan") if mean else 0.0)
        return
    dims, sts = _coalesce(shape, [_bstr(t, shape) for t in ins])
    f64 = ins[0].dtype == torch.float64
    BLOCK = 1024
    while len(dims) > 6:
        ins = [t.expand(shape).contiguous() for t in ins]
        dims, sts = _coalesce(shape, [_bstr(t, shape) for t in ins])
    flat = len(dims) == 1 and all(v in (0, 1) for v in sts[0])
    if flat and not f64 and n > 131072:
        BLOCK = 2048
    nblk = triton.cdiv(n, BLOCK)
    iters = triton.cdiv(nblk, 2112)
    P = triton.cdiv(nblk, iters)
    part = torch.empty((P,), dtype=torch.float64 if f64 else torch.float32, device=o.device)
    if flat:
        S = {"S%d" % j: sts[0][j] for j in range(4)}
        _k_rflat[(P,)](part, *ins, n, iters, *ex, **ce, **S, BLOCK=BLOCK, num_warps=4)
    else:
        pad = 6 - len(dims)
        dd = [1] * pad + list(dims)
        args = []
        for t in range(len(ins)):
            args += [0] * pad + [v[t] for v in sts]
        _k_rgen[(P,)](part, *ins, n, iters, *dd[1:], *args, *ex, **ce, BLOCK=BLOCK, num_warps=4)
    _k_fin[(1,)](part, o, P, n, MEAN=bool(mean), BLOCK=min(_np2(P), 1024), num_warps=4)



def _do(x, t, wt, pw, reduction, out):
    shape = tuple(x.shape)
    f64 = x.dtype == torch.float64
    ce = {"F64": f64, "ADT": tl.float64 if f64 else tl.float32, "HW": wt is not None, "HP": pw is not None}
    ins = [x, t, x if wt is None else wt, x if pw is None else pw]
    if reduction == 0:
        _k_run(out, ins, shape, (), ce)
    else:
        _k_reduce(out, ins, shape, reduction == 1, (), ce)
    return out


def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    if reduction == 0:
        out = torch.empty_like(self)
    else:
        out = torch.empty((), dtype=self.dtype, device=self.device)
    return _do(self, target, weight, pos_weight, reduction, out)


def binary_cross_entropy_with_logits_out(self, target, weight=None, pos_weight=None, reduction=1, *, out):
    return _do(self, target, weight, pos_weight, reduction, out)

