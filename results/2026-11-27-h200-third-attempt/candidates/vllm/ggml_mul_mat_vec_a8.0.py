import torch
import triton
import triton.language as tl


@triton.jit
def _f16(w, o):
    lo = tl.load(w + o).to(tl.int32)
    hi = tl.load(w + o + 1).to(tl.int32)
    return (lo | (hi << 8)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _table(c):
    # 16 signed bytes, four to a word
    t = tl.where(c < 8, tl.where(c < 4, -1079142271, -152379953), tl.where(c < 12, 639175937, 1901675829))
    v = (t >> ((c & 3) * 8)) & 0xFF
    return ((v ^ 0x80) - 0x80).to(tl.float32)


@triton.jit
def _decode(w, bo, b, u, v, TYPE: tl.constexpr):
    # value 32 b + 16 u + v of the block of bytes at w + bo
    l = u * 16 + v
    if TYPE == 2:
        q = tl.load(w + (bo + 2 + v)).to(tl.int32)
        code = (q >> (4 * u)) & 15
        r = _f16(w, bo) * (code - 8).to(tl.float32)
    elif TYPE == 3:
        q = tl.load(w + (bo + 4 + v)).to(tl.int32)
        code = (q >> (4 * u)) & 15
        r = _f16(w, bo) * code.to(tl.float32) + _f16(w, bo + 2)
    elif TYPE == 6:
        q = tl.load(w + (bo + 6 + v)).to(tl.int32)
        hb = (tl.load(w + (bo + 2 + l // 8)).to(tl.int32) >> (l % 8)) & 1
        code = ((q >> (4 * u)) & 15) | (hb << 4)
        r = _f16(w, bo) * (code - 16).to(tl.float32)
    elif TYPE == 7:
        q = tl.load(w + (bo + 8 + v)).to(tl.int32)
        hb = (tl.load(w + (bo + 4 + l // 8)).to(tl.int32) >> (l % 8)) & 1
        code = ((q >> (4 * u)) & 15) | (hb << 4)
        r = _f16(w, bo) * code.to(tl.float32) + _f16(w, bo + 2)
    elif TYPE == 8:
        q = tl.load(w + (bo + 2 + l)).to(tl.int32)
        r = _f16(w, bo) * ((q ^ 0x80) - 0x80).to(tl.float32)
    elif TYPE == 20:
        q = tl.load(w + (bo + 2 + v)).to(tl.int32)
        r = _f16(w, bo) * _table((q >> (4 * u)) & 15)
    elif TYPE == 10:
        h = b // 4
        j = b % 4
        q = tl.load(w + (bo + 16 + 32 * h + l)).to(tl.int32)
        code = (q >> (2 * j)) & 3
        sc = tl.load(w + (bo + 2 * b + u)).to(tl.int32)
        r = (_f16(w, bo + 80) * (sc & 15).to(tl.float32)) * code.to(tl.float32) - _f16(w, bo + 82) * (sc >> 4).to(tl.float32)
    elif TYPE == 11:
        h = b // 4
        j = b % 4
        q = tl.load(w + (bo + 32 + 32 * h + l)).to(tl.int32)
        hm = tl.load(w + (bo + l)).to(tl.int32)
        code = ((q >> (2 * j)) & 3) | (((hm >> b) & 1) << 2)
        s = 2 * b + u
        lo = (tl.load(w + (bo + 96 + (s & 7))).to(tl.int32) >> (4 * (s // 8))) & 15
        hi = (tl.load(w + (bo + 104 + (s & 3))).to(tl.int32) >> (2 * (s // 4))) & 3
        sc = (lo | (hi << 4)) - 32
        r = (_f16(w, bo + 108) * sc.to(tl.float32)) * (code - 4).to(tl.float32)
    elif TYPE == 12 or TYPE == 13:
        g = b // 2
        f = b % 2
        p0 = tl.load(w + (bo + 4 + (b & 3))).to(tl.int32)
        p1 = tl.load(w + (bo + 8 + (b & 3))).to(tl.int32)
        p2 = tl.load(w + (bo + 12 + (b & 3))).to(tl.int32)
        sc = tl.where(b < 4, p0 & 63, (p2 & 15) | ((p0 >> 6) << 4))
        mn = tl.where(b < 4, p1 & 63, (p2 >> 4) | ((p1 >> 6) << 4))
        if TYPE == 12:
            q = tl.load(w + (bo + 16 + 32 * g + l)).to(tl.int32)
            code = (q >> (4 * f)) & 15
        else:
            q = tl.load(w + (bo + 48 + 32 * g + l)).to(tl.int32)
            hb = (tl.load(w + (bo + 16 + l)).to(tl.int32) >> b) & 1
            code = ((q >> (4 * f)) & 15) | (hb << 4)
        r = (_f16(w, bo) * sc.to(tl.float32)) * code.to(tl.float32) - _f16(w, bo + 2) * mn.to(tl.float32)
    elif TYPE == 14:
        h = b // 4
        j = b % 4
        q = tl.load(w + (bo + 64 * h + 32 * (j % 2) + l)).to(tl.int32)
        qh = tl.load(w + (bo + 128 + 32 * h + l)).to(tl.int32)
        code = ((q >> (4 * (j // 2))) & 15) | (((qh >> (2 * j)) & 3) << 4)
        sc = tl.load(w + (bo + 192 + 2 * b + u)).to(tl.int32)
        sc = (sc ^ 0x80) - 0x80
        r = (_f16(w, bo + 208) * sc.to(tl.float32)) * (code - 32).to(tl.float32)
    else:
        q = tl.load(w + (bo + 8 + 16 * b + v)).to(tl.int32)
        sl = (tl.load(w + (bo + 4 + b // 2)).to(tl.int32) >> (4 * (b % 2))) & 15
        sh = (tl.load(w + (bo + 2 + b // 4)).to(tl.int32) >> (2 * (b % 4))) & 3
        sc = (sl | (sh << 4)) - 32
        r = (_f16(w, bo) * sc.to(tl.float32)) * _table((q >> (4 * u)) & 15)
    return r


_BLOCK = {2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 20: (32, 18),
          10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 23: (256, 136)}


# In all kernels: result i, row r.  With MOE the matrix is that of expert ids[i] and the row of x is i // TOPK.


@triton.jit
def _where(ids, i, R, r, MOE: tl.constexpr):
    rr = tl.minimum(r, R - 1).to(tl.int64)
    if MOE:
        e = tl.load(ids + i).to(tl.int64)
        rr = rr + e * R
    return rr


@triton.jit
def _mv_any(w, x, ids, out, R, K, TOPK, rowbytes, MOE: tl.constexpr, TYPE: tl.constexpr, CPB: tl.constexpr,
            BYTES: tl.constexpr, RB: tl.constexpr, NC: tl.constexpr):
    nr = (R - 1) // RB + 1
    pid = tl.program_id(0)
    r = pid % nr * RB + tl.arange(0, RB)
    i = pid // nr
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    nch = K // 32
    u = tl.arange(0, 2)
    v = tl.arange(0, 16)
    acc = tl.zeros([RB], tl.float32)
    for c0 in range(0, nch, NC):
        c = c0 + tl.arange(0, NC)
        cm = c < nch
        cc = tl.minimum(c, nch - 1)
        xo = (cc * 32)[:, None, None] + u[None, :, None] * 16 + v[None, None, :]
        xv = tl.load(xb + xo, mask=cm[:, None, None] & (xo >= 0), other=0.0).to(tl.float32)
        bo = (rr * rowbytes)[:, None, None, None] + ((cc // CPB) * BYTES)[None, :, None, None]
        b = (cc % CPB)[None, :, None, None]
        val = _decode(w, bo, b, u[None, None, :, None], v[None, None, None, :], TYPE)
        p = val * xv[None, :, :, :]
        acc += tl.sum(tl.sum(tl.sum(p, axis=3), axis=2), axis=1)
    tl.store(out + i.to(tl.int64) * R + r, acc.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _fl(q, MASK: tl.constexpr):
    # 2**23 + (q & MASK), exact
    return ((q & MASK) | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _mv12(w, x, ids, out, R, K, TOPK, roww, MOE: tl.constexpr, RB: tl.constexpr, NGB: tl.constexpr):
    # Q4_K in words of 32 bits, groups of 64 values
    nr = (R - 1) // RB + 1
    pid = tl.program_id(0)
    r = pid % nr * RB + tl.arange(0, RB)
    i = pid // nr
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    ng = K // 64
    w8 = tl.arange(0, 8)
    acc = tl.zeros([RB, NGB], tl.float32)
    for g0 in range(0, ng, NGB):
        g = g0 + tl.arange(0, NGB)
        gm = g < ng
        gc = tl.minimum(g, ng - 1)
        gq = gc % 4
        bo = (rr * roww)[:, None] + ((gc // 4) * 36)[None, :]
        q = tl.load(w + (bo[:, :, None] + (gq * 8)[None, :, None] + (w8 + 4)[None, None, :]))
        dm = tl.load(w + bo)
        s0 = tl.load(w + bo + 1)
        s1 = tl.load(w + bo + 2)
        s2 = tl.load(w + bo + 3)
        sh = ((gq & 1) * 16)[None, :]
        low = (gq < 2)[None, :]
        p0 = s0 >> sh
        p1 = s1 >> sh
        p2 = s2 >> sh
        sca = tl.where(low, p0 & 63, (p2 & 15) | ((p0 & 0xC0) >> 2)).to(tl.float32)
        mna = tl.where(low, p1 & 63, ((p2 >> 4) & 15) | ((p1 & 0xC0) >> 2)).to(tl.float32)
        p0 = p0 >> 8
        p1 = p1 >> 8
        p2 = p2 >> 8
        scb = tl.where(low, p0 & 63, (p2 & 15) | ((p0 & 0xC0) >> 2)).to(tl.float32)
        mnb = tl.where(low, p1 & 63, ((p2 >> 4) & 15) | ((p1 & 0xC0) >> 2)).to(tl.float32)
        d = (dm & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        m = ((dm >> 16) & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        xo = (gc * 64)[:, None] + (w8 * 4)[None, :]
        xm = gm[:, None] & (w8 < 8)[None, :]
        xa0 = tl.load(xb + xo, mask=xm, other=0.0).to(tl.float32)
        xa1 = tl.load(xb + xo + 1, mask=xm, other=0.0).to(tl.float32)
        xa2 = tl.load(xb + xo + 2, mask=xm, other=0.0).to(tl.float32)
        xa3 = tl.load(xb + xo + 3, mask=xm, other=0.0).to(tl.float32)
        xb0 = tl.load(xb + xo + 32, mask=xm, other=0.0).to(tl.float32)
        xb1 = tl.load(xb + xo + 33, mask=xm, other=0.0).to(tl.float32)
        xb2 = tl.load(xb + xo + 34, mask=xm, other=0.0).to(tl.float32)
        xb3 = tl.load(xb + xo + 35, mask=xm, other=0.0).to(tl.float32)
        sxa = tl.sum((xa0 + xa1) + (xa2 + xa3), axis=1)
        sxb = tl.sum((xb0 + xb1) + (xb2 + xb3), axis=1)
        xa1 = xa1 * 0.00390625
        xa2 = xa2 * 0.0000152587890625
        xa3 = xa3 * 0.0625
        xb0 = xb0 * 0.0625
        xb1 = xb1 * 0.000244140625
        xb3 = xb3 * 0.00390625
        qh = q >> 20
        ta = (_fl(q, 0xF) - 8388608.0) * xa0[None, :, :]
        ta += (_fl(q, 0xF00) - 8388608.0) * xa1[None, :, :]
        ta += (_fl(q, 0xF0000) - 8388608.0) * xa2[None, :, :]
        ta += (_fl(qh, 0xF0) - 8388608.0) * xa3[None, :, :]
        tb = (_fl(q, 0xF0) - 8388608.0) * xb0[None, :, :]
        tb += (_fl(q, 0xF000) - 8388608.0) * xb1[None, :, :]
        tb += (_fl(qh, 0xF) - 8388608.0) * xb2[None, :, :]
        tb += (_fl(qh, 0xF00) - 8388608.0) * xb3[None, :, :]
        pa = tl.sum(ta, axis=2)
        pb = tl.sum(tb, axis=2)
        acc += d * (sca * pa + scb * pb) - m * (mna * sxa[None, :] + mnb * sxb[None, :])
    res = tl.sum(acc, axis=1)
    tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _mv8(w, x, ids, out, R, K, TOPK, roww, MOE: tl.constexpr, RB: tl.constexpr, NBB: tl.constexpr):
    # Q8_0 in words of 16 bits
    nr = (R - 1) // RB + 1
    pid = tl.program_id(0)
    r = pid % nr * RB + tl.arange(0, RB)
    i = pid // nr
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    nb = K // 32
    v = tl.arange(0, 16)
    acc = tl.zeros([RB, NBB, 16], tl.float32)
    for b0 in range(0, nb, NBB):
        b = b0 + tl.arange(0, NBB)
        bm = b < nb
        bc = tl.minimum(b, nb - 1)
        bo = (rr * roww)[:, None, None] + (bc * 17)[None, :, None]
        q = tl.load(w + (bo + (v + 1)[None, None, :])).to(tl.int32) ^ 0x8080
        d = tl.load(w + bo).to(tl.float16, bitcast=True).to(tl.float32)
        xo = (bc * 32)[:, None] + (v * 2)[None, :]
        xm = bm[:, None] & (v < 16)[None, :]
        x0 = tl.load(xb + xo, mask=xm, other=0.0).to(tl.float32)
        x1 = tl.load(xb + xo + 1, mask=xm, other=0.0).to(tl.float32) * 0.00390625
        t = (_fl(q, 0xFF) - 8388736.0) * x0[None, :, :]
        t += (_fl(q, 0xFF00) - 8421376.0) * x1[None, :, :]
        acc += t * d
    res = tl.sum(tl.sum(acc, axis=2), axis=1)
    tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _six(t, xb, xo, xm, sp, s0off):
    x0 = tl.load(xb + xo, mask=xm, other=0.0).to(tl.float32)
    x1 = tl.load(xb + xo + 1, mask=xm, other=0.0).to(tl.float32) * 0.00390625
    sc = tl.load(sp + s0off).to(tl.float32)
    p = (_fl(t, 0xFF) - 8388640.0) * x0[None, :, :]
    p += (_fl(t, 0xFF00) - 8396800.0) * x1[None, :, :]
    return p * sc


@triton.jit
def _mv14(w, w8, x, ids, out, R, K, TOPK, roww, MOE: tl.constexpr, RB: tl.constexpr, NHB: tl.constexpr):
    # Q6_K in words of 16 bits, halves of blocks (128 values); w8 is the same memory as int8
    nr = (R - 1) // RB + 1
    pid = tl.program_id(0)
    r = pid % nr * RB + tl.arange(0, RB)
    i = pid // nr
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    nh = K // 128
    p = tl.arange(0, 16)
    acc = tl.zeros([RB, NHB, 16], tl.float32)
    for h0 in range(0, nh, NHB):
        hb = h0 + tl.arange(0, NHB)
        hm = hb < nh
        hc = tl.minimum(hb, nh - 1)
        h = (hc % 2)[None, :, None]
        pp = p[None, None, :]
        bo = (rr * roww)[:, None, None] + ((hc // 2) * 105)[None, :, None]
        ql0 = tl.load(w + (bo + h * 32 + pp)).to(tl.int32)
        ql1 = tl.load(w + (bo + h * 32 + 16 + pp)).to(tl.int32)
        qh = tl.load(w + (bo + 64 + h * 16 + pp)).to(tl.int32)
        d = tl.load(w + (bo + 104)).to(tl.float16, bitcast=True).to(tl.float32)
        t0 = (ql0 & 0x0F0F) | ((qh & 0x0303) << 4)
        t1 = (ql1 & 0x0F0F) | ((qh & 0x0C0C) << 2)
        t2 = ((ql0 >> 4) & 0x0F0F) | (qh & 0x3030)
        t3 = ((ql1 >> 4) & 0x0F0F) | ((qh >> 2) & 0x3030)
        xo = (hc * 128)[:, None] + (p * 2)[None, :]
        xm = hm[:, None] & (p < 16)[None, :]
        so = bo * 2 + 192 + h * 8 + pp // 8
        s = _six(t0, xb, xo, xm, w8, so)
        s += _six(t1, xb, xo + 32, xm, w8, so + 2)
        s += _six(t2, xb, xo + 64, xm, w8, so + 4)
        s += _six(t3, xb, xo + 96, xm, w8, so + 6)
        acc += s * d
    res = tl.sum(tl.sum(acc, axis=2), axis=1)
    tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _four(q0, q1, q2, q3, d, xb, xo, xm):
    x0 = tl.load(xb + xo, mask=xm, other=0.0).to(tl.float32)
    x1 = tl.load(xb + xo + 16, mask=xm, other=0.0).to(tl.float32) * 0.0625
    x2 = tl.load(xb + xo + 1, mask=xm, other=0.0).to(tl.float32) * 0.00390625
    x3 = tl.load(xb + xo + 17, mask=xm, other=0.0).to(tl.float32) * 0.000244140625
    t = q0 * x0[None, :, :]
    t += q1 * x1[None, :, :]
    t += q2 * x2[None, :, :]
    t += q3 * x3[None, :, :]
    return t * d


@triton.jit
def _mv2(w, x, out, R, K, B, roww, RB: tl.constexpr, NBB: tl.constexpr, BC: tl.constexpr):
    # Q4_0 in words of 16 bits, BC rows of x at once
    nr = (R - 1) // RB + 1
    pid = tl.program_id(0)
    r = pid % nr * RB + tl.arange(0, RB)
    i0 = pid // nr * BC
    rr = tl.minimum(r, R - 1).to(tl.int64)
    nb = K // 32
    v = tl.arange(0, 8)
    a0 = tl.zeros([RB, NBB, 8], tl.float32)
    a1 = tl.zeros([RB, NBB, 8], tl.float32)
    a2 = tl.zeros([RB, NBB, 8], tl.float32)
    a3 = tl.zeros([RB, NBB, 8], tl.float32)
    x0 = x + i0.to(tl.int64) * K
    x1 = x + tl.minimum(i0 + 1, B - 1).to(tl.int64) * K
    x2 = x + tl.minimum(i0 + 2, B - 1).to(tl.int64) * K
    x3 = x + tl.minimum(i0 + 3, B - 1).to(tl.int64) * K
    for b0 in range(0, nb, NBB):
        b = b0 + tl.arange(0, NBB)
        bm = b < nb
        bc = tl.minimum(b, nb - 1)
        bo = (rr * roww)[:, None, None] + (bc * 9)[None, :, None]
        q = tl.load(w + (bo + (v + 1)[None, None, :])).to(tl.int32)
        d = tl.load(w + bo).to(tl.float16, bitcast=True).to(tl.float32)
        q0 = _fl(q, 0xF) - 8388616.0
        q1 = _fl(q, 0xF0) - 8388736.0
        q2 = _fl(q, 0xF00) - 8390656.0
        q3 = _fl(q, 0xF000) - 8421376.0
        xo = (bc * 32)[:, None] + (v * 2)[None, :]
        xm = bm[:, None] & (v < 8)[None, :]
        a0 += _four(q0, q1, q2, q3, d, x0, xo, xm)
        if BC > 1:
            a1 += _four(q0, q1, q2, q3, d, x1, xo, xm)
        if BC > 2:
            a2 += _four(q0, q1, q2, q3, d, x2, xo, xm)
            a3 += _four(q0, q1, q2, q3, d, x3, xo, xm)
    ob = out + i0.to(tl.int64) * R + r
    ty = out.dtype.element_ty
    rm = r < R
    tl.store(ob, tl.sum(tl.sum(a0, axis=2), axis=1).to(ty), mask=rm)
    R64 = tl.zeros([RB], tl.int64) + R
    if BC > 1:
        tl.store(ob + R64, tl.sum(tl.sum(a1, axis=2), axis=1).to(ty), mask=rm & (i0 + 1 < B))
    if BC > 2:
        tl.store(ob + R64 * 2, tl.sum(tl.sum(a2, axis=2), axis=1).to(ty), mask=rm & (i0 + 2 < B))
        tl.store(ob + R64 * 3, tl.sum(tl.sum(a3, axis=2), axis=1).to(ty), mask=rm & (i0 + 3 < B))


def _words(wf, dt, size):
    if wf.data_ptr() % 16 != 0 or wf.storage_offset() % size != 0 or wf.numel() % size != 0:
        return None
    return wf.view(dt)


def _pow2(x, lo, hi):
    p = lo
    while p < hi and p < x:
        p *= 2
    return p


def ggml_mul_mat_vec_a8(W, X, type, row):
    B, K = X.shape
    R = int(row)
    t = int(type)
    out = torch.empty((B, R), dtype=X.dtype, device=X.device)
    if B == 0 or R == 0:
        return out
    if K == 0:
        out.fill_(0)
        return out
    x = X if X.is_contiguous() else X.contiguous()
    w = W if W.is_contiguous() else W.contiguous()
    wf = w.view(-1)
    vals, nbytes = _BLOCK[t]
    rowbytes = K // vals * nbytes
    if t == 12:
        ww = _words(wf, torch.int32, 4)
        if ww is not None:
            RB = 4
            _mv12[(triton.cdiv(R, RB) * B,)](ww, x, x, out, R, K, 1, rowbytes // 4, MOE=False, RB=RB,
                                           NGB=_pow2(K // 64, 16, 64), num_warps=4)
            return out
    elif t == 8:
        ww = _words(wf, torch.int16, 2)
        if ww is not None:
            RB = 4
            _mv8[(triton.cdiv(R, RB) * B,)](ww, x, x, out, R, K, 1, rowbytes // 2, MOE=False, RB=RB,
                                          NBB=_pow2(K // 32, 16, 64), num_warps=4)
            return out
    elif t == 14:
        ww = _words(wf, torch.int16, 2)
        if ww is not None:
            RB = 4
            _mv14[(triton.cdiv(R, RB) * B,)](ww, wf.view(torch.int8), x, x, out, R, K, 1, rowbytes // 2, MOE=False,
                                           RB=RB, NHB=_pow2(K // 128, 16, 32), num_warps=4)
            return out
    elif t == 2:
        ww = _words(wf, torch.int16, 2)
        if ww is not None:
            BC = 1 if B == 1 else (2 if B == 2 else 4)
            RB = 2 if BC == 4 else 4
            _mv2[(triton.cdiv(R, RB) * triton.cdiv(B, BC),)](ww, x, out, R, K, B, rowbytes // 2, RB=RB,
                                                           NBB=_pow2(K // 32, 16, 64), BC=BC, num_warps=4)
            return out
    RB = 4
    _mv_any[(triton.cdiv(R, RB) * B,)](wf, x, x, out, R, K, 1, rowbytes, MOE=False, TYPE=t, CPB=vals // 32,
                                     BYTES=nbytes, RB=RB, NC=_pow2(K // 32, 16, 32), num_warps=4)
    return out

