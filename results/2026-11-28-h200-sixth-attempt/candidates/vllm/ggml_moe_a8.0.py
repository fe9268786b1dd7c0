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
    # bfloat16: float16 would overflow where the scales are large
    x = tl.load(xp, mask=xm, other=0.0)
    return tl.dot(w.to(CD), tl.trans(x), acc)


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
def _moe_kernel(W, X, O, ids_p, exp_p, npp, NROW, K, RB, SB, ES, nk, num_n, TOT, top_k, TYPE: tl.constexpr,
                AL: tl.constexpr, CD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    pn = pid % num_n
    pm = pid // num_n
    total = tl.load(npp)
    if pm * BM < total:
        i = pm * BM + tl.arange(0, BM)
        inb = i < total
        ids = tl.load(ids_p + i, mask=inb, other=TOT)
        ok = inb & (ids < TOT) & (ids >= 0)
        ex = tl.load(exp_p + i // 4, mask=inb, other=0)
        tok = tl.where(ok, ids // top_k, 0)
        # the tile's experts, in most cases one or two
        e_lo = tl.min(tl.where(ok, ex, 2147483647), axis=0)
        e_hi = tl.max(tl.where(ok, ex, -1), axis=0)
        rn = pn * BN + tl.arange(0, BN)
        wr = W + tl.minimum(rn, NROW - 1).to(tl.int64) * RB
        xp = X + (tok.to(tl.int64) * K)[:, None] + tl.arange(0, 32)[None, :]
        acc = tl.zeros([BN, BM], dtype=tl.float32)
        for e in range(e_lo, e_hi + 1):
            mine = ok & (ex == e)
            if tl.max(mine.to(tl.int32), axis=0) > 0:
                wp = wr + e.to(tl.int64) * ES
                for kb in range(0, nk):
                    acc = _step256(acc, wp + kb * SB, xp + kb * 256, mine[:, None], TYPE, AL, CD)
        o = O + (ids.to(tl.int64) * NROW)[None, :] + rn[:, None]
        tl.store(o, acc.to(O.dtype.element_ty), mask=ok[None, :] & (rn < NROW)[:, None])


@triton.jit
def _max2(a, b):
    return tl.maximum(a, b)


@triton.jit
def _tile(exp_p, total, t, P2: tl.constexpr, G: tl.constexpr):
    # tile t: at most G blocks of one expert; its first block (-1: none), expert and number of blocks
    i = tl.arange(0, P2)
    vb = total // 4
    inb = i < vb
    ex = tl.load(exp_p + i, mask=inb, other=-1)
    pv = tl.load(exp_p + i - 1, mask=inb & (i > 0), other=-1)
    new = (i == 0) | (ex != pv)
    st = tl.associative_scan(tl.where(new & inb, i, 0), 0, _max2)
    flag = inb & ((i - st) % G == 0)
    no = tl.cumsum(flag.to(tl.int32), 0) - 1
    s = tl.max(tl.where(flag & (no == t), i, -1), axis=0)
    e = tl.max(tl.where(i == s, ex, -1), axis=0)
    c = tl.sum((inb & (i >= s) & (i < s + G) & (ex == e)).to(tl.int32), axis=0)
    return s, e, c


@triton.jit
def _moe_q4k(W, X, O, ids_p, exp_p, npp, NROW, K, RB, ES, nk4, num_n, TOT, top_k, P2: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    pid = tl.program_id(0)
    pn = pid % num_n
    t = pid // num_n
    s, e, c = _tile(exp_p, tl.load(npp), t, P2, BM // 4)
    if s >= 0:
        j = tl.arange(0, BM)
        ids = tl.load(ids_p + s * 4 + j, mask=j < c * 4, other=TOT)
        ok = (ids < TOT) & (ids >= 0)
        tok = tl.where(ok, ids // top_k, 0)
        rn = pn * BN + tl.arange(0, BN)
        ro = tl.minimum(rn, NROW - 1)
        wb = W + e.to(tl.int64) * ES
        hp = (wb + ro.to(tl.int64) * RB).to(tl.pointer_type(tl.int32))
        qp = wb + ro.to(tl.int64)[:, None] * RB + (16 + tl.arange(0, 32))[None, :]
        xp = X + (tok.to(tl.int64) * K)[:, None] + tl.arange(0, 64)[None, :]
        okm = ok[:, None]
        acc = tl.zeros([BN, BM], dtype=tl.float32)
        for kk in tl.range(0, nk4, num_stages=NS):
            kb = kk // 4
            g = kk % 4
            x = tl.load(xp + kk * 64, mask=okm, other=0.0)
            q = tl.load(qp + (kb * 144 + g * 32))
            dm = tl.load(hp + kb * 36)
            s0 = tl.load(hp + (kb * 36 + 1))
            s1 = tl.load(hp + (kb * 36 + 2))
            s2 = tl.load(hp + (kb * 36 + 3))
            sh = 16 * (g % 2)
            s0 = s0 >> sh
            s1 = s1 >> sh
            s2 = s2 >> sh
            d = dm.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            m = (dm >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            first = g < 2
            a0 = tl.where(first, s0 & 63, (s2 & 15) | ((s0 >> 2) & 48))
            a1 = tl.where(first, (s0 >> 8) & 63, ((s2 >> 8) & 15) | ((s0 >> 10) & 48))
            b0 = tl.where(first, s1 & 63, ((s2 >> 4) & 15) | ((s1 >> 2) & 48))
            b1 = tl.where(first, (s1 >> 8) & 63, ((s2 >> 12) & 15) | ((s1 >> 10) & 48))
            d0 = d * a0.to(tl.float32)
            d1 = d * a1.to(tl.float32)
            m0 = m * b0.to(tl.float32)
            m1 = m * b1.to(tl.float32)
            lo = (q & 15).to(tl.float32) * d0[:, None] - m0[:, None]
            hi = (q >> 4).to(tl.float32) * d1[:, None] - m1[:, None]
            w = tl.join(lo.to(tl.bfloat16), hi.to(tl.bfloat16))
            w = tl.reshape(tl.permute(w, (0, 2, 1)), [BN, 64])
            acc = tl.dot(w, tl.trans(x), acc)
        o = O + (ids.to(tl.int64) * NROW)[None, :] + rn[:, None]
        tl.store(o, acc.to(O.dtype.element_ty), mask=ok[None, :] & (rn < NROW)[:, None])


@triton.jit
def _bytes4(v, d, BN: tl.constexpr):
    # the 4 * 16 signed bytes of each row of v (BN, 16), times d (BN, 2), as bfloat16 (BN, 64)
    b0 = (v << 24) >> 24
    b1 = (v << 16) >> 24
    b2 = (v << 8) >> 24
    b3 = v >> 24
    w = tl.join(tl.join(b0, b2), tl.join(b1, b3))
    w = tl.reshape(w, [BN, 2, 32]).to(tl.float32) * d[:, :, None]
    return tl.reshape(w.to(tl.bfloat16), [BN, 64])


@triton.jit
def _moe_q80(W, X, O, ids_p, exp_p, npp, NROW, K, RB4, ES4, nk2, num_n, TOT, top_k, P2: tl.constexpr,
             BM: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    # W, RB4, ES4 in words of 32 bits: two blocks are 17 words, d, 16 words of codes half a word off, d, 16 words
    pid = tl.program_id(0)
    pn = pid % num_n
    t = pid // num_n
    s, e, c = _tile(exp_p, tl.load(npp), t, P2, BM // 4)
    if s >= 0:
        j = tl.arange(0, BM)
        ids = tl.load(ids_p + s * 4 + j, mask=j < c * 4, other=TOT)
        ok = (ids < TOT) & (ids >= 0)
        tok = tl.where(ok, ids // top_k, 0)
        rn = pn * BN + tl.arange(0, BN)
        ro = tl.minimum(rn, NROW - 1)
        wr = W + e.to(tl.int64) * ES4 + ro.to(tl.int64)[:, None] * RB4
        i = tl.arange(0, 16)
        qp = wr + ((i // 8) * 17 + i % 8)[None, :]
        dp = wr + (tl.arange(0, 2) * 17)[None, :]
        i = tl.arange(0, 64)
        xp = X + (tok.to(tl.int64) * K)[:, None] + ((i // 32) * 64 + i % 32)[None, :]
        okm = ok[:, None]
        acc = tl.zeros([BN, BM], dtype=tl.float32)
        for k in tl.range(0, nk2, num_stages=NS):
            x0 = tl.load(xp + k * 128, mask=okm, other=0.0)
            x1 = tl.load(xp + k * 128 + 32, mask=okm, other=0.0)
            va = tl.load(qp + k * 34)
            vb = tl.load(qp + (k * 34 + 1))
            vc = tl.load(qp + (k * 34 + 9))
            da = tl.load(dp + k * 34)
            db = tl.load(dp + (k * 34 + 8))
            da = da.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            db = (db >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
            v = ((va >> 16) & 65535) | (vb << 16)
            acc = tl.dot(_bytes4(v, da, BN), tl.trans(x0), acc)
            acc = tl.dot(_bytes4(vc, db, BN), tl.trans(x1), acc)
        o = O + (ids.to(tl.int64) * NROW)[None, :] + rn[:, None]
        tl.store(o, acc.to(O.dtype.element_ty), mask=ok[None, :] & (rn < NROW)[:, None])


_BYTES = {2: 144, 3: 160, 6: 176, 7: 192, 8: 272, 10: 84, 11: 110, 12: 144, 13: 176, 14: 210}


def ggml_moe_a8(X, W, sorted_token_ids, expert_ids, num_tokens_post_padded, type, row, top_k, tokens):
    K = X.shape[1]
    row = int(row)
    top_k = int(top_k)
    tot = int(tokens) * top_k
    out = torch.empty((tot, row), dtype=X.dtype, device=X.device)
    n = sorted_token_ids.shape[0]
    if out.numel() == 0 or n == 0:
        return out
    type = int(type)
    E = W.shape[0]
    RB = W.shape[2]
    nk = K // 256
    if X.dtype != torch.bfloat16:
        X = X.to(torch.bfloat16)
    avg = triton.cdiv(n, max(E, 1))
    nb = expert_ids.shape[0]
    a = W.data_ptr()
    if 0 < nb <= 1024 and nk > 0 and ((type == 12 and a % 16 == 0) or (type == 8 and a % 4 == 0)):
        P2 = max(16, triton.next_power_of_2(nb))
        BM = max(16, min(128, triton.next_power_of_2(avg + avg // 4)))
        tiles = triton.cdiv(nb, BM // 4) + min(E, nb)
        if type == 12:
            BN = 128
            num_n = triton.cdiv(row, BN)
            _moe_q4k[(tiles * num_n,)](
                W, X, out, sorted_token_ids, expert_ids, num_tokens_post_padded, row, K, RB, W.stride(0),
                nk * 4, num_n, tot, top_k, P2=P2, BM=BM, BN=BN, NS=3, num_warps=8, maxnreg=128)
        else:
            BN = 64
            num_n = triton.cdiv(row, BN)
            _moe_q80[(tiles * num_n,)](
                W.view(torch.int32), X, out, sorted_token_ids, expert_ids, num_tokens_post_padded, row, K, RB // 4,
                W.stride(0) // 4, nk * 2, num_n, tot, top_k, P2=P2, BM=BM, BN=BN, NS=3, num_warps=4)
        return out
    BM = max(16, min(64, triton.next_power_of_2(avg)))
    BN, nw = 64, 4
    if row >= 2048:
        BN, nw = 128, 8
    num_n = triton.cdiv(row, BN)
    _moe_kernel[(triton.cdiv(n, BM) * num_n,)](
        W, X, out, sorted_token_ids, expert_ids, num_tokens_post_padded, row, K, RB, _BYTES[type],
        W.stride(0), nk, num_n, tot, top_k, TYPE=type, AL=a % 2 == 0, CD=tl.bfloat16,
        BM=BM, BN=BN, num_warps=nw, num_stages=2)
    return out
