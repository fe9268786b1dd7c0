import torch
import triton
import triton.language as tl


@triton.jit
def _f16(p, AL: tl.constexpr):
    # the float16 at the byte pointers p, as float32
    if AL:
        r = tl.load(p.to(tl.pointer_type(tl.float16))).to(tl.float32)
    else:
        lo = tl.load(p).to(tl.int32)
        hi = tl.load(p + 1).to(tl.int32)
        r = (lo | (hi << 8)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
    return r


@triton.jit
def _deq32(p, TYPE: tl.constexpr, AL: tl.constexpr):
    # 32 values of each of the blocks that begin at p
    l = tl.arange(0, 32)[None, :]
    pr = p[:, None]
    d = _f16(p, AL)[:, None]
    if TYPE == 2:
        q = tl.load(pr + 2 + l % 16).to(tl.int32)
        w = d * (((q >> (4 * (l // 16))) & 15) - 8).to(tl.float32)
    elif TYPE == 3:
        m = _f16(p + 2, AL)[:, None]
        q = tl.load(pr + 4 + l % 16).to(tl.int32)
        w = d * ((q >> (4 * (l // 16))) & 15).to(tl.float32) + m
    elif TYPE == 6:
        h = tl.load(p + 2).to(tl.int32)
        h = h | (tl.load(p + 3).to(tl.int32) << 8)
        h = h | (tl.load(p + 4).to(tl.int32) << 16)
        h = h | (tl.load(p + 5).to(tl.int32) << 24)
        q = tl.load(pr + 6 + l % 16).to(tl.int32)
        c = ((q >> (4 * (l // 16))) & 15) | (((h[:, None] >> l) & 1) << 4)
        w = d * (c - 16).to(tl.float32)
    elif TYPE == 7:
        m = _f16(p + 2, AL)[:, None]
        h = tl.load(p + 4).to(tl.int32)
        h = h | (tl.load(p + 5).to(tl.int32) << 8)
        h = h | (tl.load(p + 6).to(tl.int32) << 16)
        h = h | (tl.load(p + 7).to(tl.int32) << 24)
        q = tl.load(pr + 8 + l % 16).to(tl.int32)
        c = ((q >> (4 * (l // 16))) & 15) | (((h[:, None] >> l) & 1) << 4)
        w = d * c.to(tl.float32) + m
    else:
        q = tl.load(pr + 2 + l).to(tl.int8, bitcast=True)
        w = d * q.to(tl.float32)
    return w


@triton.jit
def _deq256(p, d, m, b: tl.constexpr, TYPE: tl.constexpr):
    # values 32 b to 32 b + 31 of each of the blocks that begin at p
    l = tl.arange(0, 32)[None, :]
    pr = p[:, None]
    h: tl.constexpr = b // 4
    j: tl.constexpr = b % 4
    if TYPE == 10:
        q = (tl.load(pr + (16 + 32 * h) + l).to(tl.int32) >> (2 * j)) & 3
        s = tl.load(pr + 2 * b + l // 16).to(tl.int32)
        w = (d[:, None] * (s & 15).to(tl.float32)) * q.to(tl.float32) - m[:, None] * (s >> 4).to(tl.float32)
    elif TYPE == 11:
        q = (tl.load(pr + (32 + 32 * h) + l).to(tl.int32) >> (2 * j)) & 3
        q = q | (((tl.load(pr + l).to(tl.int32) >> b) & 1) << 2)
        if b < 4:
            s = tl.load(pr + (96 + 2 * b) + l // 16).to(tl.int32) & 15
        else:
            s = tl.load(pr + (96 + 2 * b - 8) + l // 16).to(tl.int32) >> 4
        t = tl.load(pr + (104 + 2 * (b % 2)) + l // 16).to(tl.int32)
        s = s | (((t >> (2 * (b // 2))) & 3) << 4)
        w = (d[:, None] * (s - 32).to(tl.float32)) * (q - 4).to(tl.float32)
    elif TYPE == 14:
        q = (tl.load(pr + (64 * h + 32 * (j % 2)) + l).to(tl.int32) >> (4 * (j // 2))) & 15
        q = q | (((tl.load(pr + (128 + 32 * h) + l).to(tl.int32) >> (2 * j)) & 3) << 4)
        s = tl.load(pr + (192 + 2 * b) + l // 16).to(tl.int8, bitcast=True)
        w = (d[:, None] * s.to(tl.float32)) * (q - 32).to(tl.float32)
    else:
        # Q4_K and Q5_K
        if b < 4:
            sc = tl.load(p + (4 + b)).to(tl.int32) & 63
            mn = tl.load(p + (8 + b)).to(tl.int32) & 63
        else:
            x = tl.load(p + (8 + b)).to(tl.int32)
            sc = (x & 15) | ((tl.load(p + b).to(tl.int32) >> 6) << 4)
            mn = (x >> 4) | ((tl.load(p + (4 + b)).to(tl.int32) >> 6) << 4)
        if TYPE == 12:
            q = (tl.load(pr + (16 + 32 * (b // 2)) + l).to(tl.int32) >> (4 * (b % 2))) & 15
        else:
            q = (tl.load(pr + (48 + 32 * (b // 2)) + l).to(tl.int32) >> (4 * (b % 2))) & 15
            q = q | (((tl.load(pr + 16 + l).to(tl.int32) >> b) & 1) << 4)
        w = (d * sc.to(tl.float32))[:, None] * q.to(tl.float32) - (m * mn.to(tl.float32))[:, None]
    return w


@triton.jit
def _mac(acc, w, xp, xm, CD: tl.constexpr):
    x = tl.load(xp, mask=xm, other=0.0)
    if CD == tl.float32:
        acc = tl.dot(w, tl.trans(x), acc, input_precision="tf32")
    else:
        # bfloat16 for float16, too: a scale times a code may be beyond 65504
        acc = tl.dot(w.to(tl.bfloat16), tl.trans(x.to(tl.bfloat16)), acc)
    return acc


@triton.jit
def _step256(acc, wp, xp, xm, TYPE: tl.constexpr, AL: tl.constexpr, CD: tl.constexpr):
    # adds the products of 256 columns; wp: the rows' bytes from there on, acc: (rows of W, rows of X)
    if TYPE == 10:
        d = _f16(wp + 80, AL)
        m = _f16(wp + 82, AL)
    elif TYPE == 11:
        d = _f16(wp + 108, AL)
        m = d
    elif TYPE == 14:
        d = _f16(wp + 208, AL)
        m = d
    elif TYPE >= 12:
        d = _f16(wp, AL)
        m = _f16(wp + 2, AL)
    for b in tl.static_range(8):
        if TYPE >= 10:
            acc = _mac(acc, _deq256(wp, d, m, b, TYPE), xp + 32 * b, xm, CD)
        elif TYPE == 2:
            acc = _mac(acc, _deq32(wp + 18 * b, TYPE, AL), xp + 32 * b, xm, CD)
        elif TYPE == 3:
            acc = _mac(acc, _deq32(wp + 20 * b, TYPE, AL), xp + 32 * b, xm, CD)
        elif TYPE == 6:
            acc = _mac(acc, _deq32(wp + 22 * b, TYPE, AL), xp + 32 * b, xm, CD)
        elif TYPE == 7:
            acc = _mac(acc, _deq32(wp + 24 * b, TYPE, AL), xp + 32 * b, xm, CD)
        else:
            acc = _mac(acc, _deq32(wp + 34 * b, TYPE, AL), xp + 32 * b, xm, CD)
    return acc


@triton.jit
def _mul_kernel(W, X, O, NROW, BATCH, K, RB, SB, nk, per, num_m, num_n, ob, TYPE: tl.constexpr,
                AL: tl.constexpr, CD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    pm = pid % num_m
    rest = pid // num_m
    pn = rest % num_n
    ps = rest // num_n
    rn = pn * BN + tl.arange(0, BN)
    rm = pm * BM + tl.arange(0, BM)
    xm = (rm < BATCH)[:, None]
    wp = W + tl.minimum(rn, NROW - 1).to(tl.int64) * RB
    xp = X + (rm.to(tl.int64) * K)[:, None] + tl.arange(0, 32)[None, :]
    acc = tl.zeros([BN, BM], dtype=tl.float32)
    for kb in range(ps * per, tl.minimum(ps * per + per, nk)):
        acc = _step256(acc, wp + kb * SB, xp + kb * 256, xm, TYPE, AL, CD)
    o = O + ps.to(tl.int64) * ob + (rm.to(tl.int64) * NROW)[None, :] + rn[:, None]
    tl.store(o, acc.to(O.dtype.element_ty), mask=(rm < BATCH)[None, :] & (rn < NROW)[:, None])


@triton.jit
def _sum_kernel(P, O, n, S, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.zeros([BLOCK], dtype=tl.float32)
    for s in range(0, S):
        a += tl.load(P + s.to(tl.int64) * n + i, mask=m, other=0.0)
    tl.store(O + i, a.to(O.dtype.element_ty), mask=m)


_BYTES = {2: 144, 3: 160, 6: 176, 7: 192, 8: 272, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210}
_TL = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32}


def ggml_mul_mat_a8(W, X, type, row):
    batch, K = X.shape
    row = int(row)
    out = torch.empty((batch, row), dtype=X.dtype, device=X.device)
    if out.numel() == 0:
        return out
    type = int(type)
    RB = W.shape[1]
    SB = _BYTES[type]
    nk = K // 256
    BM = max(16, min(128, triton.next_power_of_2(batch)))
    if X.dtype == torch.float32:
        BM = min(BM, 32)
    BN = 128
    nw = 8
    if BM <= 32:
        BN, nw = 64, 4
    num_m = triton.cdiv(batch, BM)
    num_n = triton.cdiv(row, BN)
    tiles = num_m * num_n
    target = 132 if BM >= 128 else 264
    split = max(1, min(target // tiles, nk // 2))
    per = triton.cdiv(nk, split) if nk else 1
    split = max(1, triton.cdiv(nk, per))
    dst = out
    if split > 1:
        dst = torch.empty((split, batch, row), dtype=torch.float32, device=X.device)
    _mul_kernel[(tiles * split,)](
        W, X, dst, row, batch, K, RB, SB, nk, per, num_m, num_n, batch * row, TYPE=type,
        AL=W.data_ptr() % 2 == 0, CD=_TL[X.dtype], BM=BM, BN=BN, num_warps=nw,
        num_stages=1 if X.dtype == torch.float32 else 2)
    if split > 1:
        n = batch * row
        _sum_kernel[(triton.cdiv(n, 1024),)](dst, out, n, split, BLOCK=1024, num_warps=4)
    return out

