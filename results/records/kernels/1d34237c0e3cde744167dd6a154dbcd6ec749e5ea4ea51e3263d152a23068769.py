import torch
import triton
import triton.language as tl


@triton.jit
def _conv(x, SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr):
    # to the result's dtype, then to that of the arithmetic
    if SAME:
        y = x.to(ADT)
    elif CDT == tl.float16:
        y = x.to(tl.float32).to(tl.float16).to(tl.float32)
    elif CDT == tl.bfloat16:
        y = x.to(tl.float32).to(tl.bfloat16).to(tl.float32)
    elif CDT == tl.bfloat16:
        y = x.to(tl.float32)
    elif ADT == tl.int64:
        if x.dtype == tl.float16 or x.dtype == tl.bfloat16:
            y = x.to(tl.float32).to(tl.int64)
        else:
            y = x.to(tl.int64)
    else:
        y = x.to(ADT)
    return y


@triton.jit(do_not_specialize=["d1", "d2", "d3"])
def _rows(x, o, N, sxn, son, d1, d2, d3, a0, a1, a2, a3, b0, b1, b2, b3,
          SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i3 = row % d3
    q = row // d3
    i2 = q % d2
    q = q // d2
    i1 = q % d1
    i0 = q // d1
    xb = i0 * a0 + i1 * a1 + i2 * a2 + i3 * a3
    ob = i0 * b0 + i1 * b1 + i2 * b2 + i3 * b3
    carry = tl.zeros((1,), ADT)
    steps = (N - 1) // BLOCK + 1
    for j in range(0, steps):
        # in 64 bits, since the last step may pass 2**31
        c = (row * 0 + j) * BLOCK + tl.arange(0, BLOCK)
        m = c < N
        v = _conv(tl.load(x + xb + c * sxn, mask=m, other=0), SAME, CDT, ADT)
        s = carry + tl.cumsum(v, 0)
        tl.store(o + ob + c * son, s.to(o.dtype.element_ty), mask=m)
        carry += tl.sum(v, 0)


@triton.jit
def _cols(x, o, N, I, nib, SAME: tl.constexpr, CDT: tl.constexpr, ADT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    # row-major (outer, N, I), summed over the middle
    pid = tl.program_id(0)
    c = (pid % nib).to(tl.int64) * BC + tl.arange(0, BC)
    mc = c < I
    base = (pid // nib).to(tl.int64) * N * I
    carry = tl.zeros((1, BC), ADT)
    for j in range(0, (N - 1) // BR + 1):
        r = (base * 0 + j) * BR + tl.arange(0, BR)
        m = (r < N)[:, None] & mc[None, :]
        off = base + r[:, None].to(tl.int64) * I + c[None, :]
        v = _conv(tl.load(x + off, mask=m, other=0), SAME, CDT, ADT)
        s = carry + tl.cumsum(v, 0)
        tl.store(o + off, s.to(o.dtype.element_ty), mask=m)
        carry += tl.sum(v, 0)[None, :]


@triton.jit(do_not_specialize=["NB"])
def _long(x, o, st, N, NB, sxn, xrow, SAME: tl.constexpr, CDT: tl.constexpr, BLOCK: tl.constexpr, W: tl.constexpr):
    # few long rows: every block tells its sum, and adds up those before it in a fixed order
    pid = tl.program_id(0)
    row = (pid // NB).to(tl.int64)
    blk = pid % NB
    c = blk.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = c < N
    v = _conv(tl.load(x + row * xrow + c * sxn, mask=m, other=0), SAME, CDT, tl.float32)
    tot = tl.sum(v, 0)
    word = (tot.to(tl.int32, bitcast=True).to(tl.int64) << 32) | 1
    tl.atomic_xchg(st + row * NB + blk, word)
    pre = tl.zeros((W,), tl.float32)
    for j in range(0, blk, W):
        i = j + tl.arange(0, W)
        mi = i < blk
        p = st + row * NB + i
        s = tl.load(p, mask=mi, other=1, volatile=True)
        while tl.min(s & 1, 0) == 0:
            s = tl.load(p, mask=mi, other=1, volatile=True)
        pre += (s >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    y = tl.sum(pre, 0) + tl.cumsum(v, 0)
    tl.store(o + row * N + c, y.to(o.dtype.element_ty), mask=m)


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


_F = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64}


def _scan(x, o, dim, dt):
    # o: of dtype dt, row-major but for complex parts
    same = x.dtype == dt
    if x.dtype == torch.bool:
        x = x.view(torch.uint8)
    if dt in _F:
        cdt, adt = _F[dt], (tl.float64 if dt == torch.float64 else tl.float32)
    else:
        cdt, adt = tl.int64, tl.int64
    nd = x.dim()
    N = int(x.shape[dim])
    inner = _prod(x.shape[dim + 1:])
    outer = _prod(x.shape[:dim])
    ce = {"SAME": same, "CDT": cdt, "ADT": adt}
    if outer * inner >= 2 ** 31 - 1 and o.is_contiguous():
        # more scans than programs: as columns, of which one program takes several
        x = x.contiguous()
    if inner >= 16 and x.is_contiguous() and o.is_contiguous():
        BC = 32
        BR = min(_np2(N), 128)
        nib = triton.cdiv(inner, BC)
        _cols[(outer * nib,)](x, o, N, inner, nib, **ce, BR=BR, BC=BC, num_warps=4)
        return
    rest = [i for i in range(nd) if i != dim]
    for _ in range(2):
        dims, sts = _coalesce([x.shape[i] for i in rest], [[o.stride(i) for i in rest], [x.stride(i) for i in rest]])
        if len(dims) <= 4:
            break
        x = x.contiguous()
    rows = _prod(dims)
    if adt == tl.float32 and rows < 264 and N >= 65536 and len(dims) == 1 and o.is_contiguous() and inner == 1:
        BLOCK = 8192
        NB = triton.cdiv(N, BLOCK)
        st = torch.zeros((rows * NB,), dtype=torch.int64, device=o.device)
        _long[(rows * NB,)](x, o, st, N, NB, x.stride(dim), sts[0][1] if rows > 1 else 0, SAME=same, CDT=cdt,
                            BLOCK=BLOCK, W=1024, num_warps=8)
        return
    pad = 4 - len(dims)
    dd = [1] * pad + dims
    b = [0] * pad + [v[0] for v in sts]
    a = [0] * pad + [v[1] for v in sts]
    BLOCK = min(max(_np2(N), 16), 1024 if adt != tl.float32 else 2048)
    _rows[(rows,)](x, o, N, x.stride(dim), o.stride(dim), *dd[1:], *a, *b, **ce, BLOCK=BLOCK, num_warps=4)


def cumsum(self, dim, *, dtype=None):
    x = _plain(self)
    dt = dtype
    if dt is None:
        dt = x.dtype if (x.dtype.is_floating_point or x.dtype.is_complex) else torch.int64
    out = torch.empty(tuple(x.shape), dtype=dt, device=x.device)
    if out.numel() == 0:
        return out
    o = out
    if x.dim() == 0:
        x, o = x.view(1), out.view(1)
        dim = 0
    if dim < 0:
        dim += x.dim()
    if dt.is_complex:
        rt = torch.float64 if dt == torch.complex128 else torch.float32
        orr = torch.view_as_real(o)
        last = orr.dim() - 1
        if x.is_complex():
            xr = torch.view_as_real(x)
            _scan(xr.select(last, 0), orr.select(last, 0), dim, rt)
            _scan(xr.select(last, 1), orr.select(last, 1), dim, rt)
        else:
            _scan(x, orr.select(last, 0), dim, rt)
            orr.select(last, 1).fill_(0.0)
    else:
        if x.is_complex():
            xr = torch.view_as_real(x)
            x = xr.select(xr.dim() - 1, 0)
        _scan(x, o, dim, dt)
    return out
