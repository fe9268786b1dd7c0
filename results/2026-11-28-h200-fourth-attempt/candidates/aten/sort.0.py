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


@triton.jit
def _key(x, keys, row, c, m, P, d1, a0, a1, sn, FIRST: tl.constexpr, KIND: tl.constexpr, DESC: tl.constexpr,
         INF: tl.constexpr, MAXP: tl.constexpr, OFF: tl.constexpr):
    # the key with its least at 0, so that its bits sort it
    if FIRST:
        v = tl.load(x + (row // d1) * a0 + (row % d1) * a1 + c * sn, mask=m, other=0)
        k = _enc(v, KIND, DESC, INF, MAXP)
        if KIND == 1 or KIND == 4:
            k = k + OFF
        elif KIND != 0:
            k = k ^ OFF
    else:
        # what lies between N and P, a multiple of 64, is scratch memory, too, and masked later
        k = tl.load(keys + row * P + c, mask=c < P, other=0)
    return k


@triton.jit(do_not_specialize=["shift", "d1", "a0", "a1"])
def _hist(x, keys, hist, N, P, NB, d1, a0, a1, sn, shift, FIRST: tl.constexpr, KIND: tl.constexpr, DESC: tl.constexpr,
          INF: tl.constexpr, MAXP: tl.constexpr, OFF: tl.constexpr, B: tl.constexpr):
    # hist[row, block, digit]
    pid = tl.program_id(0)
    row = (pid // NB).to(tl.int64)
    blk = pid % NB
    c0 = blk.to(tl.int64) * B
    e = tl.arange(0, B)
    c = c0 + e
    m = c < N
    k = _key(x, keys, row, c, m, P, d1, a0, a1, sn, FIRST, KIND, DESC, INF, MAXP, OFF)
    d = ((k >> shift) & 255).to(tl.int32)
    d = tl.where(m, d, 255)
    h = tl.histogram(d, 256)
    j = tl.arange(0, 256)
    # what lies beyond the row has been counted as 255
    pad = tl.maximum(c0 + B - N, 0).to(tl.int32)
    h = h - tl.where(j == 255, pad, 0)
    tl.store(hist + pid.to(tl.int64) * 256 + j, h.to(hist.dtype.element_ty))


@triton.jit
def _scan(hist, tot, NB, BLOCK: tl.constexpr):
    # over the blocks of a row, for thirty-two digits: what stands in earlier blocks; tot: what in all
    pid = tl.program_id(0)
    row = (pid // 8).to(tl.int64)
    j = (pid % 8) * 32 + tl.arange(0, 32)
    base = hist + row * NB * 256
    carry = tl.zeros((32,), hist.dtype.element_ty)
    for b in range(0, NB, BLOCK):
        r = b + tl.arange(0, BLOCK)
        p = base + (r.to(tl.int64) * 256)[:, None] + j[None, :]
        m = (r < NB)[:, None] & (j >= 0)[None, :]
        v = tl.load(p, mask=m, other=0)
        s = tl.cumsum(v, 0)
        tl.store(p, carry[None, :] + s - v, mask=m)
        carry += tl.sum(v, 0)
    tl.store(tot + row * 256 + j, carry)


@triton.jit(do_not_specialize=["shift", "d1", "a0", "a1"])
def _scatter(x, keys, idx, okeys, oidx, hist, tot, N, P, NB, d1, a0, a1, sn, shift, FIRST: tl.constexpr,
             LAST: tl.constexpr, KIND: tl.constexpr, DESC: tl.constexpr, INF: tl.constexpr, MAXP: tl.constexpr,
             OFF: tl.constexpr, B: tl.constexpr, LB: tl.constexpr):
    pid = tl.program_id(0)
    row = (pid // NB).to(tl.int64)
    blk = pid % NB
    c0 = blk.to(tl.int64) * B
    e = tl.arange(0, B)
    c = c0 + e
    m = c < N
    k = _key(x, keys, row, c, m, P, d1, a0, a1, sn, FIRST, KIND, DESC, INF, MAXP, OFF)
    if not FIRST:
        i = tl.load(idx + row * P + c, mask=c < P, other=0)
    d = ((k >> shift) & 255).to(tl.int32)
    # where each digit of this block goes: all smaller digits of the row, and the same ones of earlier blocks
    j = tl.arange(0, 256)
    t = tl.load(tot + row * 256 + j)
    g = tl.load(hist + pid.to(tl.int64) * 256 + j) + tl.cumsum(t, 0) - t
    h = tl.histogram(tl.where(m, d, 255), 256)
    g = g - (tl.cumsum(h, 0) - h).to(g.dtype)
    # the block in the order of the digit, equal ones as they stood; what lies beyond the row comes last
    p = tl.where(m, (d << LB) | e, (256 << LB) | e)
    p = tl.sort(p)
    li = p & (B - 1)
    ds = p >> LB
    m = ds < 256
    k = tl.gather(k, li, 0)
    pos = tl.gather(g, ds & 255, 0) + e
    if LAST:
        pos = row * N + pos
    else:
        pos = row * P + pos
    if FIRST:
        i = c0 + li
    else:
        i = tl.gather(i, li, 0)
    if LAST:
        if KIND == 1 or KIND == 4:
            k = k - OFF
        elif KIND != 0:
            k = k ^ OFF
        y = _dec(k, KIND, DESC, MAXP)
        tl.store(okeys + pos, y.to(okeys.dtype.element_ty), mask=m)
        tl.store(oidx + pos, i.to(oidx.dtype.element_ty), mask=m)
    else:
        tl.store(okeys + pos, k, mask=m)
        tl.store(oidx + pos, i.to(oidx.dtype.element_ty), mask=m)


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
    B, LB = (256, 8) if N <= 256 else (2048, 11)
    NB = triton.cdiv(N, B)
    # a row's length in scratch memory
    P = triton.cdiv(N, 64) * 64
    dev = x.device
    kt = torch.int64 if bits == 64 else torch.int32
    # numbers within a row
    nt = torch.int64 if N >= 2 ** 31 else torch.int32
    hist = torch.empty((M * NB * 256,), dtype=nt, device=dev)
    tot = torch.empty((M * 256,), dtype=nt, device=dev)
    passes = (bits + 7) // 8
    buf = []
    for _ in range(min(2, passes - 1)):
        buf.append((torch.empty((M * P,), dtype=kt, device=dev), torch.empty((M * P,), dtype=nt, device=dev)))
    SB = min(128, max(16, _np2(NB)))
    ck, ci = x, inds
    for p in range(passes):
        first, last = p == 0, p == passes - 1
        nk, ni = (ov, inds) if last else buf[p % 2]
        _hist[(M * NB,)](x, ck, hist, N, P, NB, d1, a0, a1, sn, 8 * p, FIRST=first, **ce, OFF=off, B=B, num_warps=4)
        _scan[(M * 8,)](hist, tot, NB, BLOCK=SB, num_warps=4)
        _scatter[(M * NB,)](x, ck, ci, nk, ni, hist, tot, N, P, NB, d1, a0, a1, sn, 8 * p, FIRST=first, LAST=last, **ce,
                            OFF=off, B=B, LB=LB, num_warps=4)
        ck, ci = nk, ni
    return res


