import torch
import triton
import triton.language as tl


@triton.jit
def _loss(a, b, t, g, F64: tl.constexpr, ADT: tl.constexpr):
    # g: a Python number, which comes as float64
    mg = tl.full([1], g, tl.float64)
    if not F64:
        mg = mg.to(tl.float32)
    d = a.to(ADT) - b.to(ADT)
    v = mg - t.to(ADT) * d
    return tl.where(v < 0.0, 0.0, v)


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


@triton.jit(do_not_specialize=["g"])
def _k_flat(o, x0, x1, x2, n, g: tl.float64, F64: tl.constexpr, ADT: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, BLOCK: tl.constexpr):
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
    y = _loss(v0, v1, v2, g, F64, ADT)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["nb", "d1", "d2", "d3", "g"])
def _k_rows(o, x0, x1, x2, N, nb, d1, d2, d3, t0_0, t0_1, t0_2, t0_3, t1_0, t1_1, t1_2, t1_3, t2_0, t2_1, t2_2, t2_3, t3_0, t3_1, t3_2, t3_3, g: tl.float64, F64: tl.constexpr, ADT: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    row = pid // nb
    cb = pid - row * nb
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
    y = _loss(v0, v1, v2, g, F64, ADT)
    tl.store(o + bo + c, y.to(o.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["n", "d1", "d2", "d3", "d4", "d5", "t0_0", "t0_1", "t0_2", "t0_3", "t0_4", "t0_5", "t1_0", "t1_1", "t1_2", "t1_3", "t1_4", "t1_5", "t2_0", "t2_1", "t2_2", "t2_3", "t2_4", "t2_5", "t3_0", "t3_1", "t3_2", "t3_3", "t3_4", "t3_5", "g"])
def _k_gen(o, x0, x1, x2, n, d1, d2, d3, d4, d5, t0_0, t0_1, t0_2, t0_3, t0_4, t0_5, t1_0, t1_1, t1_2, t1_3, t1_4, t1_5, t2_0, t2_1, t2_2, t2_3, t2_4, t2_5, t3_0, t3_1, t3_2, t3_3, t3_4, t3_5, g: tl.float64, F64: tl.constexpr, ADT: tl.constexpr, BLOCK: tl.constexpr):
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
    y = _loss(v0, v1, v2, g, F64, ADT)
    tl.store(o + oo, y.to(o.dtype.element_ty), mask=m)


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


def _k_run(o, ins, shape, ex=(), ce={}):
    if _prod(shape) == 0:
        return
    sts = [_bstr(o, shape)] + [_bstr(t, shape) for t in ins]
    dims, st = _coalesce(shape, sts)
    _k_go(o, list(ins), dims, st, ex, ce)


@triton.jit(do_not_specialize=["iters", "g"])
def _k_rflat(p, x0, x1, x2, n, iters, g: tl.float64, F64: tl.constexpr, ADT: tl.constexpr, S0: tl.constexpr, S1: tl.constexpr, S2: tl.constexpr, BLOCK: tl.constexpr):
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
        y = _loss(v0, v1, v2, g, F64, ADT)
        acc += tl.where(m, y, 0.0)
    tl.store(p + pid, tl.sum(acc, 0))


@triton.jit(do_not_specialize=["n", "iters", "d1", "d2", "d3", "d4", "d5", "t0_0", "t0_1", "t0_2", "t0_3", "t0_4", "t0_5", "t1_0", "t1_1", "t1_2", "t1_3", "t1_4", "t1_5", "t2_0", "t2_1", "t2_2", "t2_3", "t2_4", "t2_5", "g"])
def _k_rgen(p, x0, x1, x2, n, iters, d1, d2, d3, d4, d5, t0_0, t0_1, t0_2, t0_3, t0_4, t0_5, t1_0, t1_1, t1_2, t1_3, t1_4, t1_5, t2_0, t2_1, t2_2, t2_3, t2_4, t2_5, g: tl.float64, F64: tl.constexpr, ADT: tl.constexpr, BLOCK: tl.constexpr):
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
        y = _loss(v0, v1, v2, g, F64, ADT)
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
        S = {"S%d" % j: sts[0][j] for j in range(3)}
        _k_rflat[(P,)](part, *ins, n, iters, *ex, **ce, **S, BLOCK=BLOCK, num_warps=4)
    else:
        pad = 6 - len(dims)
        dd = [1] * pad + list(dims)
        args = []
        for t in range(len(ins)):
            args += [0] * pad + [v[t] for v in sts]
        _k_rgen[(P,)](part, *ins, n, iters, *dd[1:], *args, *ex, **ce, BLOCK=BLOCK, num_warps=4)
    _k_fin[(1,)](part, o, P, n, MEAN=bool(mean), BLOCK=min(_np2(P), 1024), num_warps=4)



def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    shape = tuple(torch.broadcast_shapes(input1.shape, input2.shape, target.shape))
    dt = input1.dtype
    f64 = dt == torch.float64
    ce = {"F64": f64, "ADT": tl.float64 if f64 else tl.float32}
    ex = (float(margin),)
    ins = [input1, input2, target]
    if reduction == 0:
        out = torch.empty(shape, dtype=dt, device=input1.device)
        _k_run(out, ins, shape, ex, ce)
    else:
        out = torch.empty((), dtype=dt, device=input1.device)
        _k_reduce(out, ins, shape, reduction == 1, ex, ce)
    return out

