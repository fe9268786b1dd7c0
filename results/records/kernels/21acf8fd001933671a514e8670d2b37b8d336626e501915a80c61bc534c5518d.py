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


@triton.jit(do_not_specialize=["first", "d1", "d2", "d3"])
def _reg(x, o, first, N, sxn, son, d1, d2, d3, a0, a1, a2, a3, b0, b1, b2, b3, F64: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) + first
    i3 = row % d3
    q = row // d3
    i2 = q % d2
    q = q // d2
    i1 = q % d1
    i0 = q // d1
    xb = i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3
    ob = i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3
    c = tl.arange(0, BLOCK)
    m = c < N
    c = c.to(tl.int64)
    v = tl.load(x + xb + c * sxn, mask=m, other=-float("inf"))
    if not F64:
        v = v.to(tl.float32)
    e = _expn(v - tl.max(v, 0), F64)
    e = tl.where(m, e, 0.0)
    s = tl.sum(e, 0)
    if F64:
        y = e / s
    else:
        y = e * (1.0 / s.to(tl.float64)).to(tl.float32)
    tl.store(o + ob + c * son, y.to(o.dtype.element_ty), mask=m)


@triton.jit(do_not_specialize=["first", "d1", "d2", "d3"])
def _loop(x, o, first, N, sxn, son, d1, d2, d3, a0, a1, a2, a3, b0, b1, b2, b3, F64: tl.constexpr, LOW: tl.constexpr,
          ADT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) + first
    i3 = row % d3
    q = row // d3
    i2 = q % d2
    q = q // d2
    i1 = q % d1
    i0 = q // d1
    xb = i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3
    ob = i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3
    mx = tl.full((1,), LOW, ADT)
    s = tl.zeros((BLOCK,), ADT)
    for j in range(0, (N - 1) // BLOCK + 1):
        c = (row * 0 + j) * BLOCK + tl.arange(0, BLOCK)
        m = c < N
        v = tl.load(x + xb + c * sxn, mask=m, other=-float("inf"), eviction_policy="evict_last").to(ADT)
        new = tl.maximum(mx, tl.max(v, 0))
        s = s * _expn(mx - new, F64) + _expn(v - new, F64)
        mx = new
    tot = tl.sum(s, 0)
    inv = (1.0 / tot.to(tl.float64)).to(ADT)
    for j in range(0, (N - 1) // BLOCK + 1):
        c = (row * 0 + j) * BLOCK + tl.arange(0, BLOCK)
        m = c < N
        v = tl.load(x + xb + c * sxn, mask=m, other=-float("inf"), eviction_policy="evict_first").to(ADT)
        y = _expn(v - mx, F64) * inv
        tl.store(o + ob + c * son, y.to(o.dtype.element_ty), mask=m)


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


def _softmax(self, dim, half_to_float):
    dt = torch.float32 if half_to_float else self.dtype
    out = torch.empty(tuple(self.shape), dtype=dt, device=self.device)
    if out.numel() == 0:
        return out
    x, o = self, out
    if x.dim() == 0:
        x, o = x.reshape(1), o.view(1)
        dim = 0
    if dim < 0:
        dim += x.dim()
    for _ in range(2):
        N, sxn, son = int(x.shape[dim]), int(x.stride(dim)), int(o.stride(dim))
        rest = [i for i in range(x.dim()) if i != dim]
        shape = [int(x.shape[i]) for i in rest]
        dims, sts = _coalesce(shape, [[o.stride(i) for i in rest], [x.stride(i) for i in rest]])
        if len(dims) <= 4:
            break
        x = x.contiguous()
    rows = _prod(dims)
    pad = 4 - len(dims)
    dd = [1] * pad + dims
    b = [0] * pad + [v[0] for v in sts]
    a = [0] * pad + [v[1] for v in sts]
    f64 = x.dtype == torch.float64
    BLOCK = max(_np2(N), 16)
    if BLOCK <= (8192 if f64 else 16384):
        warps = max(1, min(16, BLOCK // (512 if f64 else 1024)))
        if warps < 4:
            warps = 4 if BLOCK >= 512 else 1
        for first in range(0, rows, 1 << 30):  # a grid has fewer than 2**31 programs
            _reg[(min(rows - first, 1 << 30),)](x, o, first, N, sxn, son, *dd[1:], *a, *b, F64=f64, BLOCK=BLOCK,
                                                num_warps=warps)
    else:
        B, warps = (4096, 16) if f64 else (16384, 32)
        low = -1.7976931348623157e308 if f64 else -3.4028234663852886e38
        for first in range(0, rows, 1 << 30):
            _loop[(min(rows - first, 1 << 30),)](x, o, first, N, sxn, son, *dd[1:], *a, *b, F64=f64, LOW=low,
                                                 ADT=tl.float64 if f64 else tl.float32, BLOCK=B, num_warps=warps)
    return out
