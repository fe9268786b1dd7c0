import ctypes

import torch
import triton
import triton.language as tl


# ---------------------------------------------------------------- masks

@triton.jit
def _count_kernel(m_ptr, c_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(m_ptr + i, mask=i < n, other=0)
    tl.store(c_ptr + pid, tl.sum((v != 0).to(tl.int32), axis=0).to(tl.int64))


@triton.jit
def _scan_kernel(c_ptr, p_ptr, nb, BLOCK: tl.constexpr):
    # p[i]: the sum of all counts before i; p[nb]: of all
    lane = tl.arange(0, BLOCK)
    carry = tl.program_id(0).to(tl.int64) * 0
    for s in range(0, nb, BLOCK):
        i = s + lane
        c = tl.load(c_ptr + i, mask=i < nb, other=0)
        cs = tl.cumsum(c, axis=0)
        tl.store(p_ptr + i, carry + cs - c, mask=i < nb)
        carry += tl.sum(c, axis=0)
    tl.store(p_ptr + nb, carry)


@triton.jit
def _place_kernel(m_ptr, p_ptr, o_ptr, n, stride, size, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(m_ptr + i, mask=i < n, other=0)
    hit = (v != 0).to(tl.int32)
    pos = tl.cumsum(hit, axis=0) - hit
    start = tl.load(p_ptr + pid)
    tl.store(o_ptr + start + pos, (i // stride) % size, mask=(hit != 0) & (i < n))


def _read_int(t):
    host = t.to(device="cpu")
    return int.from_bytes(ctypes.string_at(host.data_ptr(), 8), "little")


def _positions(mask):
    """One int64 tensor for each dimension of mask: where it is true, in row-major order."""
    shape = list(mask.shape)
    dev = mask.device
    n = mask.numel()
    if n == 0:
        return [torch.empty((0,), dtype=torch.int64, device=dev) for _ in shape]
    if not mask.is_contiguous():
        mask = torch.empty(shape, dtype=mask.dtype, device=dev).copy_(mask)
    if mask.dtype == torch.bool:
        mask = mask.view(torch.uint8)
    BLOCK = 1024
    nb = triton.cdiv(n, BLOCK)
    counts = torch.empty((nb,), dtype=torch.int64, device=dev)
    prefix = torch.empty((nb + 1,), dtype=torch.int64, device=dev)
    _count_kernel[(nb,)](mask, counts, n, BLOCK=BLOCK, num_warps=4)
    _scan_kernel[(1,)](counts, prefix, nb, BLOCK=1024, num_warps=4)
    total = _read_int(prefix.narrow(0, nb, 1))
    out = []
    stride = n
    for size in shape:
        stride //= size
        o = torch.empty((total,), dtype=torch.int64, device=dev)
        if total:
            _place_kernel[(nb,)](mask, prefix, o, n, stride, size, BLOCK=BLOCK, num_warps=4)
        out.append(o)
    return out


# ---------------------------------------------------------------- gathering

@triton.jit
def _one(p, i, m, t, n):
    v = tl.load(p + i * t, mask=m, other=0).to(tl.int64)
    return tl.where(v < 0, v + n, v)


@triton.jit
def _offsets(i, m, p0, p1, p2, t0, t1, t2, n0, n1, n2, s0, s1, s2, K: tl.constexpr):
    off = _one(p0, i, m, t0, n0) * s0
    if K > 1:
        off += _one(p1, i, m, t1, n1) * s1
    if K > 2:
        off += _one(p2, i, m, t2, n2) * s2
    return off


@triton.jit
def _acc_kernel(p, o_ptr, nb, t, n, s, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < nb
    off = _one(p, i, m, t, n) * s
    if not FIRST:
        off += tl.load(o_ptr + i, mask=m, other=0)
    tl.store(o_ptr + i, off, mask=m)


@triton.jit
def _points_kernel(
    x_ptr, o_ptr, p0, p1, p2, t0, t1, t2, n0, n1, n2, s0, s1, s2,
    NB, F, sf, blocks,
    K: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):
    # out[f, i] = x[f * sf + offset(i)]
    pid = tl.program_id(0).to(tl.int64)
    i = (pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    f0 = (pid // blocks) * ROWS
    m = i < NB
    off = _offsets(i, m, p0, p1, p2, t0, t1, t2, n0, n1, n2, s0, s1, s2, K)
    for r in tl.static_range(ROWS):
        f = f0 + r
        mm = m & (f < F)
        v = tl.load(x_ptr + f * sf + off, mask=mm)
        tl.store(o_ptr + f * NB + i, v, mask=mm)


@triton.jit
def _slabs_kernel(
    x_ptr, o_ptr, p0, p1, p2, t0, t1, t2, n0, n1, n2, s0, s1, s2,
    NB, F, sf, A, sa, blocks_a, blocks_b,
    K: tl.constexpr, BI: tl.constexpr, BA: tl.constexpr,
):
    # out[f, i, a] = x[f * sf + offset(i) + a * sa]
    pid = tl.program_id(0).to(tl.int64)
    ab = pid % blocks_a
    t = pid // blocks_a
    bb = t % blocks_b
    f = t // blocks_b
    i = bb * BI + tl.arange(0, BI)
    a = ab * BA + tl.arange(0, BA)
    m = i < NB
    off = _offsets(i, m, p0, p1, p2, t0, t1, t2, n0, n1, n2, s0, s1, s2, K)
    mm = m[:, None] & (a < A)[None, :]
    v = tl.load(x_ptr + f * sf + off[:, None] + a[None, :] * sa, mask=mm)
    tl.store(o_ptr + (f * NB + i)[:, None] * A + a[None, :], v, mask=mm)


# Many broadcast indices are read where they lie, by merged dimensions (last first) with strides of their own.

@triton.jit
def _strided(i, m, ps, dims, ts, ns, ss, K: tl.constexpr, D: tl.constexpr):
    off = i * 0
    for k in tl.static_range(K):
        at = i * 0
        rest = i
        for d in tl.static_range(D - 1):
            at += (rest % dims[d]) * ts[k * D + d]
            rest = rest // dims[d]
        at += rest * ts[k * D + D - 1]
        v = tl.load(ps[k] + at, mask=m, other=0).to(tl.int64)
        off += tl.where(v < 0, v + ns[k], v) * ss[k]
    return off


@triton.jit
def _strided_points_kernel(
    x_ptr, o_ptr, ps, dims, ts, ns, ss, NB, F, sf, blocks,
    K: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    i = (pid % blocks) * BLOCK + tl.arange(0, BLOCK)
    f0 = (pid // blocks) * ROWS
    m = i < NB
    off = _strided(i, m, ps, dims, ts, ns, ss, K, D)
    for r in tl.static_range(ROWS):
        f = f0 + r
        mm = m & (f < F)
        v = tl.load(x_ptr + f * sf + off, mask=mm)
        tl.store(o_ptr + f * NB + i, v, mask=mm)


@triton.jit
def _strided_slabs_kernel(
    x_ptr, o_ptr, ps, dims, ts, ns, ss, NB, F, sf, A, sa, blocks_a, blocks_b,
    K: tl.constexpr, D: tl.constexpr, BI: tl.constexpr, BA: tl.constexpr,
):
    pid = tl.program_id(0).to(tl.int64)
    ab = pid % blocks_a
    t = pid // blocks_a
    bb = t % blocks_b
    f = t // blocks_b
    i = bb * BI + tl.arange(0, BI)
    a = ab * BA + tl.arange(0, BA)
    m = i < NB
    off = _strided(i, m, ps, dims, ts, ns, ss, K, D)
    mm = m[:, None] & (a < A)[None, :]
    v = tl.load(x_ptr + f * sf + off[:, None] + a[None, :] * sa, mask=mm)
    tl.store(o_ptr + (f * NB + i)[:, None] * A + a[None, :], v, mask=mm)


def _merged(shape, strides):
    """Dimensions of tensors with these strides, last first; neighbours that are one line in all of them are one.

    Sizes, and strides of each tensor.
    """
    sizes, steps = [], [[] for _ in strides]
    for d in reversed(range(len(shape))):
        if shape[d] == 1:
            continue
        if sizes and all(s[d] == p[-1] * sizes[-1] for s, p in zip(strides, steps)):
            sizes[-1] *= shape[d]
            continue
        sizes.append(shape[d])
        for s, p in zip(strides, steps):
            p.append(s[d])
    return sizes or [1], [p or [0] for p in steps]


# more indices than these are not written out where they are broadcast, nor are their sums
_WRITTEN = 1 << 20


def _line(shape, strides):
    """The stride of these dimensions taken as one, or None where they are not one line."""
    st, span = None, 1
    for sz, s in reversed(list(zip(shape, strides))):
        if sz == 1:
            continue
        if st is None:
            st = s
        elif s != st * span:
            return None
        span *= sz
    return 1 if st is None else st


_INT = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _numel(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def index_Tensor(self, indices):
    indices = list(indices)
    if self.is_conj() or self.is_neg():
        self = torch.empty(self.shape, dtype=self.dtype, device=self.device).copy_(self)
    if self.dtype == torch.complex128:
        r = index_Tensor(torch.view_as_real(self), indices)
        return torch.view_as_complex(r)
    x = self
    dev = x.device
    # masks become positions
    idx = []
    for t in indices:
        if t is None:
            idx.append(None)
        elif t.dtype in (torch.bool, torch.uint8):
            idx.extend(_positions(t))
        else:
            idx.append(t)
    nd = x.dim()
    idx = idx + [None] * (nd - len(idx))
    where = [d for d, t in enumerate(idx) if t is not None]
    if not where:
        out = torch.empty(x.shape, dtype=x.dtype, device=dev)
        out.copy_(x)
        return out
    tens = [idx[d] for d in where]
    bshape = list(torch.broadcast_shapes(*[t.shape for t in tens]))
    adjacent = where[-1] - where[0] + 1 == len(where)
    if adjacent:
        before = list(range(0, where[0]))
        after = list(range(where[-1] + 1, nd))
    else:
        before = []
        after = [d for d in range(nd) if idx[d] is None]
    fshape = [x.shape[d] for d in before]
    ashape = [x.shape[d] for d in after]
    out = torch.empty(fshape + bshape + ashape, dtype=x.dtype, device=dev)
    if out.numel() == 0:
        return out
    x = x.permute(before + where + after)
    nf, nw = len(before), len(where)
    sf = _line(x.shape[:nf], x.stride()[:nf])
    sa = _line(x.shape[nf + nw:], x.stride()[nf + nw:])
    if sf is None or sa is None:
        x = torch.empty(x.shape, dtype=x.dtype, device=dev).copy_(x)
        sf = _line(x.shape[:nf], x.stride()[:nf])
        sa = _line(x.shape[nf + nw:], x.stride()[nf + nw:])
    NB, F, A = _numel(bshape), _numel(fshape), _numel(ashape)
    ps, ts = [], []
    tens = [t.expand(bshape) for t in tens]
    lines = [_line(e.shape, e.stride()) for e in tens]
    strided = NB > _WRITTEN and (nw > 3 or None in lines)
    for e, st in zip(tens, lines):
        if st is None and not strided:
            e, st = torch.empty(bshape, dtype=e.dtype, device=dev).copy_(e), 1
        ps.append(e)
        ts.append(st)
    ns = [x.shape[nf + k] for k in range(nw)]
    ss = [x.stride()[nf + k] for k in range(nw)]
    if nw > 3 and not strided:
        off = torch.empty((NB,), dtype=torch.int64, device=dev)
        for k in range(nw):
            _acc_kernel[(triton.cdiv(NB, 1024),)](
                ps[k], off, NB, ts[k], ns[k], ss[k], BLOCK=1024, FIRST=(k == 0), num_warps=4
            )
        ps, ts, ns, ss = [off], [1], [0], [1]
    K = len(ps)
    while len(ps) < 3:
        ps.append(ps[0])
        ts.append(1)
        ns.append(1)
        ss.append(1)
    it = _INT[x.element_size()]
    xi = x if x.dtype == it else x.view(it)
    oi = out if out.dtype == it else out.view(it)
    args = (xi, oi, ps[0], ps[1], ps[2], ts[0], ts[1], ts[2], ns[0], ns[1], ns[2], ss[0], ss[1], ss[2])
    points, slabs, more = _points_kernel, _slabs_kernel, {}
    if strided:
        dims, steps = _merged(bshape, [e.stride() for e in tens])
        K = nw
        args = (xi, oi, tuple(tens), tuple(dims), tuple(t for p in steps for t in p), tuple(ns[:nw]), tuple(ss[:nw]))
        points, slabs, more = _strided_points_kernel, _strided_slabs_kernel, {"D": len(dims)}
    if A == 1:
        if NB * F <= (1 << 16):
            BLOCK = 128
        elif F >= 8:
            BLOCK = 1024 if NB >= 1024 else max(64, triton.next_power_of_2(NB))
        else:
            BLOCK = 512
        ROWS = min(8, triton.next_power_of_2(F))
        blocks = triton.cdiv(NB, BLOCK)
        points[(blocks * triton.cdiv(F, ROWS),)](
            *args, NB, F, sf, blocks, K=K, BLOCK=BLOCK, ROWS=ROWS, num_warps=4 if BLOCK >= 256 else 2, **more,
        )
        return out
    total = 4096 if x.element_size() <= 2 else 2048
    if out.numel() <= (1 << 18):
        total = 1024
    BA = min(triton.next_power_of_2(A), total)
    BI = min(max(1, total // BA), triton.next_power_of_2(NB))
    ba, bb = triton.cdiv(A, BA), triton.cdiv(NB, BI)
    slabs[(ba * bb * F,)](
        *args, NB, F, sf, A, sa, ba, bb, K=K, BI=BI, BA=BA, num_warps=4, **more,
    )
    return out
