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
# Program (pid, ps): pid counts blocks of rows, nrb of them for each result; ps is a piece of the sum, per steps long.
# With BIG what counts columns has 64 bits.


@triton.jit
def _where(ids, i, R, r, MOE: tl.constexpr):
    rr = tl.minimum(r, R - 1).to(tl.int64)
    if MOE:
        e = tl.load(ids + i).to(tl.int64)
        rr = rr + e * R
    return rr


@triton.jit
def _mv_any(w, x, ids, out, R, K, TOPK, rowbytes, nrb, per, total, BIG: tl.constexpr, MOE: tl.constexpr, TYPE: tl.constexpr, CPB: tl.constexpr,
            BYTES: tl.constexpr, RB: tl.constexpr, NC: tl.constexpr):
    pid = tl.program_id(0)
    i = pid // nrb
    r = (pid - i * nrb) * RB + tl.arange(0, RB)
    ps = tl.program_id(1)
    if BIG:
        ps = ps.to(tl.int64)
    lo = ps * per
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    nch = K // 32
    u = tl.arange(0, 2)
    v = tl.arange(0, 16)
    acc = tl.zeros([RB], tl.float32)
    hi = tl.minimum(lo + per, nch)
    for c0 in range(lo, hi, NC):
        c = c0 + tl.arange(0, NC)
        cm = c < hi
        cc = tl.minimum(c, nch - 1)
        xo = (cc * 32)[:, None, None] + u[None, :, None] * 16 + v[None, None, :]
        xv = tl.load(xb + xo, mask=cm[:, None, None] & (xo >= 0), other=0.0).to(tl.float32)
        bo = (rr * rowbytes)[:, None, None, None] + ((cc // CPB) * BYTES)[None, :, None, None]
        b = (cc % CPB)[None, :, None, None]
        val = _decode(w, bo, b, u[None, None, :, None], v[None, None, None, :], TYPE)
        p = val * xv[None, :, :, :]
        acc += tl.sum(tl.sum(tl.sum(p, axis=3), axis=2), axis=1)
    tl.store(out + ps.to(tl.int64) * total + i.to(tl.int64) * R + r, acc.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _fl(q, MASK: tl.constexpr):
    # 2**23 + (q & MASK), exact
    return ((q & MASK) | 0x4B000000).to(tl.float32, bitcast=True)


@triton.jit
def _mv12(w, x, ids, out, R, K, TOPK, roww, nrb, per, total, BIG: tl.constexpr, MOE: tl.constexpr, RB: tl.constexpr, NGB: tl.constexpr):
    # Q4_K in words of 32 bits, groups of 64 values
    pid = tl.program_id(0)
    i = pid // nrb
    r = (pid - i * nrb) * RB + tl.arange(0, RB)
    ps = tl.program_id(1)
    if BIG:
        ps = ps.to(tl.int64)
    lo = ps * per
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    ng = K // 64
    w8 = tl.arange(0, 8)
    acc = tl.zeros([RB, NGB], tl.float32)
    hi = tl.minimum(lo + per, ng)
    for g0 in range(lo, hi, NGB):
        g = g0 + tl.arange(0, NGB)
        gm = g < hi
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
    tl.store(out + ps.to(tl.int64) * total + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _mv8(w, x, ids, out, R, K, TOPK, roww, nrb, per, total, BIG: tl.constexpr, MOE: tl.constexpr, RB: tl.constexpr, NBB: tl.constexpr):
    # Q8_0 in words of 16 bits
    pid = tl.program_id(0)
    i = pid // nrb
    r = (pid - i * nrb) * RB + tl.arange(0, RB)
    ps = tl.program_id(1)
    if BIG:
        ps = ps.to(tl.int64)
    lo = ps * per
    rr = _where(ids, i, R, r, MOE)
    xb = x + (i // TOPK).to(tl.int64) * K
    nb = K // 32
    v = tl.arange(0, 16)
    acc = tl.zeros([RB, NBB, 16], tl.float32)
    hi = tl.minimum(lo + per, nb)
    for b0 in range(lo, hi, NBB):
        b = b0 + tl.arange(0, NBB)
        bm = b < hi
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
    tl.store(out + ps.to(tl.int64) * total + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit
def _sum_pieces(part, out, total, pieces, BE: tl.constexpr, BS: tl.constexpr):
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    em = e < total
    acc = tl.zeros([BS, BE], tl.float32)
    for s0 in range(0, pieces, BS):
        s = s0 + tl.arange(0, BS)
        acc += tl.load(part + (s * total)[:, None] + e[None, :], mask=(s < pieces)[:, None] & em[None, :], other=0.0)
    tl.store(out + e, tl.sum(acc, axis=0).to(out.dtype.element_ty), mask=em)


# The kernels that are timed: a program keeps its row of x (or 4 of them) in registers, arranged as the words of the
# matrix are, and walks over RP rows of the matrix, RB at a time.


@triton.jit
def _setup(x, ids, R, K, TOPK, npr, RP, MOE: tl.constexpr):
    pid = tl.program_id(0)
    i = pid // npr
    lo = (pid - i * npr) * RP
    hi = tl.minimum(lo + RP, R)
    base = i.to(tl.int64) * 0
    if MOE:
        base = tl.load(ids + i).to(tl.int64) * R
    xb = x + (i // TOPK).to(tl.int64) * K
    return i, lo, hi, base, xb


@triton.jit
def _magic(w):
    # float16 in the low half of a word
    return (w & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _bits(q, MASK: tl.constexpr):
    # bits of MASK, which has none above bit 23, as a number times 2**-149: the code alone, with nothing to take off;
    # what stands from bit p on is multiplied with x times 2**(115 - p), for products times 2**-34
    return (q & MASK).to(tl.float32, bitcast=True)


@triton.jit
def _turn(q):
    # halves of a word exchanged
    return (q << 16) | ((q >> 16) & 0xFFFF)


@triton.jit
def _f32768(q):
    # 32768 + bits 8 to 15
    return ((q & 0xFF00) | 0x47000000).to(tl.float32, bitcast=True)


@triton.jit
def _for_nibbles(a0, a1, a2, a3, b0, b1, b2, b3):
    # values for _nibbles, times what belongs to the place of their codes
    return (a0 * 6.338253001141147e+29, a1 * 1.6225927682921336e+32, a2 * 6.338253001141147e+29, a3 * 1.6225927682921336e+32,
            b0 * 3.961408125713217e+28, b1 * 1.0141204801825835e+31, b2 * 3.961408125713217e+28, b3 * 1.0141204801825835e+31)


@triton.jit
def _nibbles(q, a0, a1, a2, a3, b0, b1, b2, b3):
    # the eight nibbles of a word (0, 2, 4, 6 are the low ones of bytes 0 to 3) times four values and four others
    h = _turn(q)
    ta = _bits(h, 0xF0000) * a0 + _bits(q, 0xF00) * a1 + _bits(q, 0xF0000) * a2 + _bits(h, 0xF00) * a3
    tb = _bits(h, 0xF00000) * b0 + _bits(q, 0xF000) * b1 + _bits(q, 0xF00000) * b2 + _bits(h, 0xF000) * b3
    return ta, tb


@triton.jit
def _px12(w, x, ids, out, R, K, TOPK, roww, npr, RP, MOE: tl.constexpr, RB: tl.constexpr, C: tl.constexpr):
    # Q4_K, chunks of 16 bytes: 16 low nibbles and 16 high ones
    i, lo, hi, base, xb = _setup(x, ids, R, K, TOPK, npr, RP, MOE)
    nc = K // 32
    c = tl.arange(0, C)
    cm = c < nc
    c = tl.minimum(c, nc - 1)
    w4 = tl.arange(0, 4)
    xo = ((c // 2) * 64 + (c % 2) * 16)[:, None] + (w4 * 4)[None, :]
    xm = cm[:, None] & (w4 < 4)[None, :]
    xa0 = tl.load(xb + xo, mask=xm, other=0.0).to(tl.float32)
    xa1 = tl.load(xb + xo + 1, mask=xm, other=0.0).to(tl.float32)
    xa2 = tl.load(xb + xo + 2, mask=xm, other=0.0).to(tl.float32)
    xa3 = tl.load(xb + xo + 3, mask=xm, other=0.0).to(tl.float32)
    xb0 = tl.load(xb + xo + 32, mask=xm, other=0.0).to(tl.float32)
    xb1 = tl.load(xb + xo + 33, mask=xm, other=0.0).to(tl.float32)
    xb2 = tl.load(xb + xo + 34, mask=xm, other=0.0).to(tl.float32)
    xb3 = tl.load(xb + xo + 35, mask=xm, other=0.0).to(tl.float32)
    sxa = tl.sum((xa0 + xa1) + (xa2 + xa3), axis=1)[None, :]
    sxb = (tl.sum((xb0 + xb1) + (xb2 + xb3), axis=1) * 0.00390625)[None, :]
    xa0, xa1, xa2, xa3, xb0, xb1, xb2, xb3 = _for_nibbles(xa0, xa1, xa2, xa3, xb0, xb1, xb2, xb3)
    xa0 = xa0[None, :, :]
    xa1 = xa1[None, :, :]
    xa2 = xa2[None, :, :]
    xa3 = xa3[None, :, :]
    xb0 = xb0[None, :, :]
    xb1 = xb1[None, :, :]
    xb2 = xb2[None, :, :]
    xb3 = xb3[None, :, :]
    ho = (c // 8) * 36
    qo = (ho + (c % 8) * 4 + 4)[:, None] + w4[None, :]
    gq = (c % 8) // 2
    sh = ((gq & 1) * 16)[None, :]
    low = (gq < 2)[None, :]
    for r0 in range(lo, hi, RB):
        r = r0 + tl.arange(0, RB)
        wr = w + (base + tl.minimum(r, R - 1)) * roww
        q = tl.load(wr[:, None, None] + qo[None, :, :])
        wh = wr[:, None] + ho[None, :]
        dm = tl.load(wh)
        s0 = tl.load(wh + 1)
        s1 = tl.load(wh + 2)
        s2 = tl.load(wh + 3)
        sc = tl.where(low, s0 & 0x3F3F3F3F, (s2 & 0x0F0F0F0F) | ((s0 >> 2) & 0x30303030)) >> sh
        mn = tl.where(low, s1 & 0x3F3F3F3F, ((s2 >> 4) & 0x0F0F0F0F) | ((s1 >> 2) & 0x30303030)) >> sh
        # times 2**34
        sca = _fl(sc, 0xFF) * 17179869184.0 - 144115188075855872.0
        scb = _fl(sc, 0xFF00) * 67108864.0 - 562949953421312.0
        mna = _fl(mn, 0xFF) - 8388608.0
        mnb = _fl(mn, 0xFF00) - 8388608.0
        ta, tb = _nibbles(q, xa0, xa1, xa2, xa3, xb0, xb1, xb2, xb3)
        pa = tl.sum(ta, axis=2)
        pb = tl.sum(tb, axis=2)
        acc = _magic(dm) * (sca * pa + scb * pb) - _magic(dm >> 16) * (mna * sxa + mnb * sxb)
        res = tl.sum(acc, axis=1)
        tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < hi)


@triton.jit
def _x8(xb, j, nw, e: tl.constexpr):
    # what byte e of word j of a row of Q8_0 is multiplied with; nothing for the scale
    blk = (j * 4) // 34
    pos = j * 4 - blk * 34 - 2 + e
    return tl.load(xb + blk * 32 + pos, mask=(j < nw) & (pos >= 0) & (pos < 32), other=0.0).to(tl.float32)


@triton.jit
def _for_bytes(x0, x1, x2, x3):
    # values for _dot8, times what belongs to the place of their codes
    return x0 * 5.820766091346741e-11, x1 * 1.6225927682921336e+32, x2 * 6.338253001141147e+29, x3 * 1.6225927682921336e+32


@triton.jit
def _dot8(q, x0, x1, x2, x3, c, SHORT: tl.constexpr):
    # four signed bytes times four values, times 2**-34
    q = q ^ -2139062144
    if SHORT:
        # with x of 11 bits or fewer and c = -128 x2 (in the same measure) both are exact, product and sum
        t = _bits(q, 0xFF0000) * x2 + c
    else:
        t = (_bits(q, 0xFF0000) - 1.1754943508222875e-38) * x2
    t += (_fl(q, 0xFF) - 8388736.0) * x0
    t += (_bits(q, 0xFF00) - 4.591774807899561e-41) * x1
    t += (_bits(q >> 16, 0xFF00) - 4.591774807899561e-41) * x3
    return t


@triton.jit
def _px8(w, wd, x, ids, out, R, K, TOPK, roww, npr, RP, MOE: tl.constexpr, RB: tl.constexpr, N1: tl.constexpr,
         N2: tl.constexpr, AHEAD: tl.constexpr):
    # Q8_0 in aligned words of 32 bits, scales among them; wd is the same memory as float16
    i, lo, hi, base, xb = _setup(x, ids, R, K, TOPK, npr, RP, MOE)
    nw = roww
    j = tl.arange(0, N1)
    x0 = _x8(xb, j, nw, 0)[None, :]
    x1 = _x8(xb, j, nw, 1)[None, :]
    x2 = _x8(xb, j, nw, 2)[None, :]
    x3 = _x8(xb, j, nw, 3)[None, :]
    xc = x2 * -7.450580596923828e-09
    x0, x1, x2, x3 = _for_bytes(x0, x1, x2, x3)
    SHORT: tl.constexpr = x.dtype.element_ty != tl.float32
    jm = (j < nw)[None, :]
    do = (tl.minimum(j, nw - 1) * 4 // 34 * 17)[None, :]
    if N2 > 0:
        j2 = N1 + tl.arange(0, N2)
        y0 = _x8(xb, j2, nw, 0)[None, :]
        y1 = _x8(xb, j2, nw, 1)[None, :]
        y2 = _x8(xb, j2, nw, 2)[None, :]
        y3 = _x8(xb, j2, nw, 3)[None, :]
        yc = y2 * -7.450580596923828e-09
        y0, y1, y2, y3 = _for_bytes(y0, y1, y2, y3)
        jm2 = (j2 < nw)[None, :]
        do2 = (tl.minimum(j2, nw - 1) * 4 // 34 * 17)[None, :]
    if AHEAD:
        r = lo + tl.arange(0, RB)
        qn = tl.load((w + (base + tl.minimum(r, hi - 1)) * roww)[:, None] + j[None, :], mask=jm, other=0)
    for r0 in range(lo, hi, RB):
        r = r0 + tl.arange(0, RB)
        ro = (base + tl.minimum(r, hi - 1)) * roww
        wr = (w + ro)[:, None]
        dr = (wd + ro * 2)[:, None]
        if AHEAD:
            q = qn
            qn = tl.load((w + (base + tl.minimum(r + RB, hi - 1)) * roww)[:, None] + j[None, :], mask=jm, other=0)
        else:
            q = tl.load(wr + j[None, :], mask=jm, other=0)
        d = tl.load(dr + do).to(tl.float32)
        if N2 > 0:
            q2 = tl.load(wr + j2[None, :], mask=jm2, other=0)
            d2 = tl.load(dr + do2).to(tl.float32)
        res = tl.sum(_dot8(q, x0, x1, x2, x3, xc, SHORT) * d, axis=1)
        if N2 > 0:
            res += tl.sum(_dot8(q2, y0, y1, y2, y3, yc, SHORT) * d2, axis=1)
        tl.store(out + i.to(tl.int64) * R + r, (res * 17179869184.0).to(out.dtype.element_ty), mask=r < hi)


@triton.jit
def _w32(p):
    # two words of 16 bits as one of 32
    a = tl.load(p).to(tl.uint16, bitcast=True).to(tl.uint32)
    b = tl.load(p + 1).to(tl.uint16, bitcast=True).to(tl.uint32)
    return (b * 65536 + a).to(tl.int32, bitcast=True)


@triton.jit
def _scale(p):
    # signed byte as float32
    return ((tl.load(p).to(tl.int32) ^ 0x80) | 0x4B000000).to(tl.float32, bitcast=True) - 8388736.0


@triton.jit
def _six4(t, x0, x1, x2, x3, c, SHORT: tl.constexpr):
    th = t >> 16
    if SHORT:
        # 128 + code; with x of 11 bits or fewer and c = -160 x2 both are exact, product and sum
        p = ((t & 0xFF0000) | 0x43000000).to(tl.float32, bitcast=True) * x2 + c
    else:
        p = (_fl(th, 0xFF) - 8388640.0) * x2
    p += (_f32768(t) - 32800.0) * x1
    p += (_fl(t, 0xFF) - 8388640.0) * x0
    p += (_f32768(th) - 32800.0) * x3
    return p


@triton.jit
def _px14(w, w8, x, ids, out, R, K, TOPK, roww, npr, RP, MOE: tl.constexpr, RB: tl.constexpr, N: tl.constexpr):
    # Q6_K: n counts the words of 32 bits of ql, 8 values each; w has words of 16 bits, w8 is the same memory as uint8
    i, lo, hi, base, xb = _setup(x, ids, R, K, TOPK, npr, RP, MOE)
    nn = K // 8
    n = tl.arange(0, N)
    nm = n < nn
    n = tl.minimum(n, nn - 1)
    blk = n // 32
    u = n % 32
    h = u // 16
    jj = (u % 16) // 8
    s = u % 8
    xo = blk * 256 + h * 128 + jj * 32 + s * 4
    x0 = tl.load(xb + xo, mask=nm, other=0.0).to(tl.float32)[None, :]
    x1 = tl.load(xb + xo + 1, mask=nm, other=0.0).to(tl.float32)[None, :]
    x2 = tl.load(xb + xo + 2, mask=nm, other=0.0).to(tl.float32)[None, :]
    x3 = tl.load(xb + xo + 3, mask=nm, other=0.0).to(tl.float32)[None, :]
    x4 = tl.load(xb + xo + 64, mask=nm, other=0.0).to(tl.float32)[None, :]
    x5 = tl.load(xb + xo + 65, mask=nm, other=0.0).to(tl.float32)[None, :]
    x6 = tl.load(xb + xo + 66, mask=nm, other=0.0).to(tl.float32)[None, :]
    x7 = tl.load(xb + xo + 67, mask=nm, other=0.0).to(tl.float32)[None, :]
    lo_o = (blk * 105 + u * 2)[None, :]
    hi_o = (blk * 105 + 64 + h * 16 + s * 2)[None, :]
    sc_o = (blk * 210 + 192 + h * 8 + jj * 2 + s // 4)[None, :]
    d_o = (blk * 105 + 104)[None, :]
    shift = (jj * 2)[None, :]
    for r0 in range(lo, hi, RB):
        r = r0 + tl.arange(0, RB)
        ro = (base + tl.minimum(r, R - 1)) * roww
        wr = (w + ro)[:, None]
        sr = (w8 + ro * 2)[:, None]
        ql = _w32(wr + lo_o)
        qh = _w32(wr + hi_o) >> shift
        d = tl.load(wr + d_o).to(tl.float16, bitcast=True).to(tl.float32)
        sa = _scale(sr + sc_o)
        sb = _scale(sr + sc_o + 4)
        ta = (ql & 0x0F0F0F0F) | ((qh << 4) & 0x30303030)
        tb = ((ql >> 4) & 0x0F0F0F0F) | (qh & 0x30303030)
        acc = (_six4(ta, x0, x1, x2, x3, x2, False) * sa + _six4(tb, x4, x5, x6, x7, x6, False) * sb) * d
        res = tl.sum(acc, axis=1)
        tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < hi)


# One warp for RB rows, its lanes side by side along a row; x in words of 64 bits, four values of 16 bits.


@triton.jit
def _x4h(v, BF: tl.constexpr):
    lo = v.to(tl.int32)
    hi = (v >> 32).to(tl.int32)
    if BF:
        a = (lo << 16).to(tl.float32, bitcast=True)
        b = (lo & -65536).to(tl.float32, bitcast=True)
        c = (hi << 16).to(tl.float32, bitcast=True)
        d = (hi & -65536).to(tl.float32, bitcast=True)
    else:
        a = _magic(lo)
        b = _magic(lo >> 16)
        c = _magic(hi)
        d = _magic(hi >> 16)
    return a, b, c, d


@triton.jit
def _q4(q, xa, xb, BF: tl.constexpr):
    # the nibbles of a word times four values and four others, and the sums of these
    a0, a1, a2, a3 = _x4h(xa, BF)
    b0, b1, b2, b3 = _x4h(xb, BF)
    sa = (a0 + a1) + (a2 + a3)
    sb = (b0 + b1) + (b2 + b3)
    a0, a1, a2, a3, b0, b1, b2, b3 = _for_nibbles(a0, a1, a2, a3, b0, b1, b2, b3)
    ta, tb = _nibbles(q, a0[None, :], a1[None, :], a2[None, :], a3[None, :], b0[None, :], b1[None, :], b2[None, :],
                      b3[None, :])
    return ta, tb, sa, sb


@triton.jit(do_not_specialize=["R", "K", "nblk", "nrb"])
def _pw12(w64, x64, ids, out, R, K, TOPK, nblk, nrb, MOE: tl.constexpr, BF: tl.constexpr, RB: tl.constexpr,
          C: tl.constexpr):
    # Q4_K, a lane has chunks of 16 bytes: 16 low nibbles and 16 high ones
    pid = tl.program_id(0)
    i = pid // nrb
    r = (pid - i * nrb) * RB + tl.arange(0, RB)
    rb = _where(ids, i, R, r, MOE) * nblk
    xb = x64 + (i // TOPK).to(tl.int64) * (K // 4)
    l = tl.arange(0, C)
    wh = (w64 + rb * 18)[:, None]
    l8 = l % 8
    qo = l8 * 2 + 2
    xl = (l8 // 2) * 16 + (l8 % 2) * 4
    sh = ((l8 // 2 & 1) * 16)[None, :]
    low = (l8 < 4)[None, :]
    acc = tl.zeros([RB, C], tl.float32)
    for b0 in range(0, nblk, C // 8):
        b = b0 + l // 8
        xm = b < nblk
        b = tl.minimum(b, nblk - 1)
        wq = wh + (b * 18 + qo)[None, :]
        q0 = tl.load(wq)
        q1 = tl.load(wq + 1)
        h0 = tl.load(wh + (b * 18)[None, :])
        h1 = tl.load(wh + (b * 18)[None, :] + 1)
        xo = xb + b * 64 + xl
        xa0 = tl.load(xo, mask=xm, other=0)
        xa1 = tl.load(xo + 1, mask=xm, other=0)
        xa2 = tl.load(xo + 2, mask=xm, other=0)
        xa3 = tl.load(xo + 3, mask=xm, other=0)
        xb0 = tl.load(xo + 8, mask=xm, other=0)
        xb1 = tl.load(xo + 9, mask=xm, other=0)
        xb2 = tl.load(xo + 10, mask=xm, other=0)
        xb3 = tl.load(xo + 11, mask=xm, other=0)
        ta0, tb0, sa0, sb0 = _q4(q0.to(tl.int32), xa0, xb0, BF)
        ta1, tb1, sa1, sb1 = _q4((q0 >> 32).to(tl.int32), xa1, xb1, BF)
        ta2, tb2, sa2, sb2 = _q4(q1.to(tl.int32), xa2, xb2, BF)
        ta3, tb3, sa3, sb3 = _q4((q1 >> 32).to(tl.int32), xa3, xb3, BF)
        pa = (ta0 + ta1) + (ta2 + ta3)
        pb = (tb0 + tb1) + (tb2 + tb3)
        # the second scale and the second minimum stand 8 bits up
        sxa = ((sa0 + sa1) + (sa2 + sa3))[None, :]
        sxb = (((sb0 + sb1) + (sb2 + sb3)) * 0.00390625)[None, :]
        dm = h0.to(tl.int32)
        s0 = (h0 >> 32).to(tl.int32)
        s1 = h1.to(tl.int32)
        s2 = (h1 >> 32).to(tl.int32)
        sc = tl.where(low, s0 & 0x3F3F3F3F, (s2 & 0x0F0F0F0F) | ((s0 >> 2) & 0x30303030)) >> sh
        mn = tl.where(low, s1 & 0x3F3F3F3F, ((s2 >> 4) & 0x0F0F0F0F) | ((s1 >> 2) & 0x30303030)) >> sh
        # times 2**34
        sca = _fl(sc, 0xFF) * 17179869184.0 - 144115188075855872.0
        scb = _fl(sc, 0xFF00) * 67108864.0 - 562949953421312.0
        mna = _fl(mn, 0xFF) - 8388608.0
        mnb = _fl(mn, 0xFF00) - 8388608.0
        acc += _magic(dm) * (sca * pa + scb * pb) - _magic(dm >> 16) * (mna * sxa + mnb * sxb)
    res = tl.sum(acc, axis=1)
    tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


@triton.jit(do_not_specialize=["R", "K", "nblk", "nrb"])
def _pw14(w, w8, x64, ids, out, R, K, TOPK, nblk, nrb, MOE: tl.constexpr, BF: tl.constexpr, RB: tl.constexpr,
          N: tl.constexpr):
    # Q6_K: a lane has words of 32 bits of ql, 8 values each; w has words of 16 bits, w8 is the same memory as uint8
    pid = tl.program_id(0)
    i = pid // nrb
    r = (pid - i * nrb) * RB + tl.arange(0, RB)
    rb = _where(ids, i, R, r, MOE) * nblk
    xb = x64 + (i // TOPK).to(tl.int64) * (K // 4)
    l = tl.arange(0, N)
    u = l % 32
    h = u // 16
    jj = (u % 16) // 8
    s = u % 8
    xl = h * 32 + jj * 8 + s
    lo_o = u * 2
    hi_o = 64 + h * 16 + s * 2
    sc_o = 192 + h * 8 + jj * 2 + s // 4
    shift = (jj * 2)[None, :]
    wr = (w + rb * 105)[:, None]
    sr = (w8 + rb * 210)[:, None]
    acc = tl.zeros([RB, N], tl.float32)
    for b0 in range(0, nblk, N // 32):
        b = b0 + l // 32
        nm = b < nblk
        b = tl.minimum(b, nblk - 1)
        xo = b * 64 + xl
        x0, x1, x2, x3 = _x4h(tl.load(xb + xo, mask=nm, other=0), BF)
        x4, x5, x6, x7 = _x4h(tl.load(xb + xo + 16, mask=nm, other=0), BF)
        ca = (x2 * -160.0)[None, :]
        cb = (x6 * -160.0)[None, :]
        bw = (b * 105)[None, :]
        ql = _w32(wr + (bw + lo_o[None, :]))
        qh = _w32(wr + (bw + hi_o[None, :])) >> shift
        d = tl.load(wr + (bw + 104)).to(tl.float16, bitcast=True).to(tl.float32)
        so = (b * 210 + sc_o)[None, :]
        sa = _scale(sr + so)
        sb = _scale(sr + so + 4)
        ta = (ql & 0x0F0F0F0F) | ((qh << 4) & 0x30303030)
        tb = ((ql >> 4) & 0x0F0F0F0F) | (qh & 0x30303030)
        acc += (_six4(ta, x0[None, :], x1[None, :], x2[None, :], x3[None, :], ca, True) * sa
                + _six4(tb, x4[None, :], x5[None, :], x6[None, :], x7[None, :], cb, True) * sb) * d
    res = tl.sum(acc, axis=1)
    tl.store(out + i.to(tl.int64) * R + r, res.to(out.dtype.element_ty), mask=r < R)


def _words(wf, dt, size):
    if wf.data_ptr() % 16 != 0 or wf.storage_offset() % size != 0 or wf.numel() % size != 0:
        return None
    return wf.view(dt)


def _pow2(x, lo, hi):
    p = lo
    while p < hi and p < x:
        p *= 2
    return p


def _plan(R, n, RB, warps):
    # rows of a program, programs for a result
    target = 132 * max(1, 16 // warps)
    rp = triton.cdiv(triton.cdiv(R * n, target), RB) * RB
    rp = max(RB, min(rp, triton.cdiv(R, RB) * RB))
    return rp, triton.cdiv(R, rp)


def _warps(x):
    return max(4, min(16, x))


def _parts(words):
    # powers of two that cover the words of a row
    p = _pow2(words, 64, 1 << 20)
    if words * 5 >= p * 4 or p == 64:
        return p, 0
    return p // 2, _pow2(words - p // 2, 16, 1 << 20)


def _x64(x):
    # x in words of 64 bits
    if x.dtype == torch.float32 or x.data_ptr() % 16 != 0 or x.storage_offset() % 4 != 0:
        return None
    return x.view(-1).view(torch.int64)


def _fast(t, wf, x, ids, out, R, K, n, top_k, rowbytes, MOE):
    # whether one of the kernels for common types did it
    nrb = triton.cdiv(R, 4)
    x64 = _x64(x) if t in (12, 14) and K <= 65536 and nrb * n < 2 ** 30 else None
    if x64 is not None and t == 12:
        ww = _words(wf, torch.int64, 8)
        if ww is not None:
            _pw12[(nrb * n,)](ww, x64, ids, out, R, K, top_k, K // 256, nrb, MOE=MOE,
                              BF=x.dtype == torch.bfloat16, RB=4, C=32, num_warps=1)
            return True
    if x64 is not None and t == 14:
        ww = _words(wf, torch.int16, 2)
        if ww is not None:
            _pw14[(nrb * n,)](ww, wf, x64, ids, out, R, K, top_k, K // 256, nrb, MOE=MOE,
                              BF=x.dtype == torch.bfloat16, RB=4, N=64 if K > 256 else 32, num_warps=1)
            return True
    if t == 12 and K <= 16384:
        ww = _words(wf, torch.int32, 4)
        if ww is None:
            return False
        C = _pow2(K // 32, 8, 512)
        nw = _warps(C // 32)
        rp, npr = _plan(R, n, 4, nw)
        _px12[(npr * n,)](ww, x, ids, out, R, K, top_k, rowbytes // 4, npr, rp, MOE=MOE, RB=4, C=C, num_warps=nw)
        return True
    if t == 8 and K <= 15360 and rowbytes % 4 == 0:
        ww = _words(wf, torch.int32, 4)
        if ww is None:
            return False
        N1, N2 = _parts(rowbytes // 4)
        nw = _warps(N1 // 256)
        RB = 2 if nw == 16 else 4
        rp, npr = _plan(R, n, RB, nw * 2 // 3 if nw < 16 else nw)
        _px8[(npr * n,)](ww, wf.view(torch.float16), x, ids, out, R, K, top_k, rowbytes // 4, npr, rp, MOE=MOE, RB=RB,
                         N1=N1, N2=N2, AHEAD=nw == 16, num_warps=nw)
        return True
    if t == 14 and K <= 16384:
        ww = _words(wf, torch.int16, 2)
        if ww is None:
            return False
        N = _pow2(K // 8, 32, 2048)
        nw = _warps(N // 128)
        rp, npr = _plan(R, n, 2, nw)
        _px14[(npr * n,)](ww, wf, x, ids, out, R, K, top_k, rowbytes // 2, npr, rp, MOE=MOE, RB=2, N=N, num_warps=nw)
        return True
    return False


# Products on tensor cores, 64 rows of W and one row of x a program.  x is rounded to two signed bytes first, for each 32
# neighbours x = d (c1 + c2 / 254).  The codes of a row are the left factor; the right one has a column for each block
# (or half block) of 256 values and for c1 and c2, with zeros where another block is, so that an integer product gives
# the sums of the blocks apart, and the scales are put to them.


@triton.jit
def _quant(x, xq, dx, sx, s8, NSB: tl.constexpr):
    # 256 values; sx sums of 32, s8 of 16
    g = tl.program_id(0).to(tl.int64)
    b = tl.arange(0, 16)
    l = tl.arange(0, 16)
    o = b[:, None] * 16 + l[None, :]
    v = tl.load(x + g * 256 + o).to(tl.float32)
    m = tl.max(tl.abs(v), axis=1)
    s = tl.sum(v, axis=1)
    m = tl.max(tl.reshape(m, [8, 2]), axis=1)
    d = m * (1.0 / 127.0)
    f = tl.where(d > 0.0, 1.0 / tl.where(d > 0.0, d, 1.0), 0.0)
    f = tl.reshape(tl.broadcast_to(f[:, None], [8, 2]), [16])
    c = v * f[:, None]
    c1 = tl.minimum(tl.maximum(tl.floor(c + 0.5), -127.0), 127.0)
    c2 = tl.minimum(tl.maximum(tl.floor((c - c1) * 254.0 + 0.5), -127.0), 127.0)
    tl.store(xq + g * 512 + o, c1.to(tl.int32).to(tl.int8))
    tl.store(xq + g * 512 + 256 + o, c2.to(tl.int32).to(tl.int8))
    b8 = tl.arange(0, 8)
    tl.store(dx + g * 8 + b8, d)
    tl.store(sx + g * 8 + b8, tl.sum(tl.reshape(s, [8, 2]), axis=1))
    tl.store(s8 + g * 16 + b, s)


@triton.jit
def _half(v):
    # the low 16 bits as float16
    return v.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _b8(v, BN: tl.constexpr, NW: tl.constexpr):
    # words as bytes
    a = tl.join(v.to(tl.int8), (v >> 16).to(tl.int8))
    b = tl.join((v >> 8).to(tl.int8), (v >> 24).to(tl.int8))
    return tl.reshape(tl.join(a, b), [BN, NW * 4])


@triton.jit
def _parts2(p, BN: tl.constexpr, NB: tl.constexpr):
    # sums of c1 and of c2 put together
    c = tl.where(tl.arange(0, 2) == 0, 1.0, 1.0 / 254.0)
    return tl.sum(tl.reshape(p.to(tl.float32), [BN, 2, NB]) * c[None, :, None], axis=1)


@triton.jit
def _place(ids, R, TOPK, nt, S, MOE: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    s = pid % S
    t = pid // S
    i = t // nt
    r = (t - i * nt) * BN + tl.arange(0, BN)
    rr = _where(ids, i, R, r, MOE)
    return s, i, r, rr, (i // TOPK).to(tl.int64)


@triton.jit
def _finish(out, acc, s, i, r, R, n, S):
    o = out + (s.to(tl.int64) * n + i) * R + r
    tl.store(o, tl.sum(acc, axis=1).to(out.dtype.element_ty), mask=r < R)


@triton.jit(do_not_specialize=["R", "n", "nblk", "nt", "S", "per", "TOPK"])
def _tc12(w, xq, dx, sx, ids, out, R, n, TOPK, nblk, nt, S, per, MOE: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    s, i, r, rr, xi = _place(ids, R, TOPK, nt, S, MOE, BN)
    hp = w + rr * nblk * 36
    qp = hp[:, None] + (4 + tl.arange(0, 32))[None, :]
    j = tl.arange(0, 16)[:, None]
    c = tl.arange(0, 128)[None, :]
    xp = xq + xi * nblk * 512 + ((c // 32) * 64 + c % 32 + (j // 8) * 256)
    ml = (c // 32) * 2 == j % 8
    mh = (c // 32) * 2 + 1 == j % 8
    b8 = tl.arange(0, 8)
    dp = dx + xi * nblk * 8 + b8
    sp = sx + xi * nblk * 8 + b8
    sh = ((b8 % 4) * 8)[None, :]
    low = (b8 < 4)[None, :]
    acc = tl.zeros([BN, 8], tl.float32)
    for b in tl.range(s * per, tl.minimum(nblk, s * per + per), num_stages=NS):
        q = tl.load(qp + b * 36)
        xl = tl.load(xp + b * 512, mask=ml, other=0)
        xh = tl.load(xp + b * 512 + 32, mask=mh, other=0)
        dm = tl.load(hp + b * 36)
        s0 = tl.load(hp + (b * 36 + 1))[:, None] >> sh
        s1 = tl.load(hp + (b * 36 + 2))[:, None] >> sh
        s2 = tl.load(hp + (b * 36 + 3))[:, None] >> sh
        dv = tl.load(dp + b * 8)
        sv = tl.load(sp + b * 8)
        p = tl.dot(_b8(q & 0x0F0F0F0F, BN, 32), tl.trans(xl), out_dtype=tl.int32)
        p = tl.dot(_b8((q >> 4) & 0x0F0F0F0F, BN, 32), tl.trans(xh), p, out_dtype=tl.int32)
        sc = tl.where(low, s0 & 63, (s2 & 15) | ((s0 >> 2) & 48)).to(tl.float32)
        mn = tl.where(low, s1 & 63, ((s2 >> 4) & 15) | ((s1 >> 2) & 48)).to(tl.float32)
        d = _half(dm)[:, None]
        m = _half(dm >> 16)[:, None]
        acc += d * (sc * (_parts2(p, BN, 8) * dv[None, :])) - m * (mn * sv[None, :])
    _finish(out, acc, s, i, r, R, n, S)


@triton.jit(do_not_specialize=["R", "n", "nblk", "nt", "S", "per", "TOPK"])
def _tc8(w, xq, dx, ids, out, R, n, TOPK, nblk, nt, S, per, MOE: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    # two blocks are 17 words: d, 16 words of codes half a word off, d, 16 words of codes
    s, i, r, rr, xi = _place(ids, R, TOPK, nt, S, MOE, BN)
    hp = (w + rr * nblk * 68)[:, None]
    u = tl.arange(0, 32)
    qp = hp + ((u // 8) * 17 + u % 8)[None, :]
    j = tl.arange(0, 16)[:, None]
    c = tl.arange(0, 128)[None, :]
    xp = xq + xi * nblk * 512 + ((c // 32) * 64 + c % 32 + (j // 8) * 256)
    ml = (c // 32) * 2 == j % 8
    mh = (c // 32) * 2 + 1 == j % 8
    b8 = tl.arange(0, 8)
    dp = dx + xi * nblk * 8 + b8
    wp = hp + ((b8 // 2) * 17 + (b8 % 2) * 8)[None, :]
    sh = ((b8 % 2) * 16)[None, :]
    acc = tl.zeros([BN, 8], tl.float32)
    for b in tl.range(s * per, tl.minimum(nblk, s * per + per), num_stages=NS):
        q0 = tl.load(qp + b * 68)
        q1 = tl.load(qp + (b * 68 + 1))
        q2 = tl.load(qp + (b * 68 + 9))
        xl = tl.load(xp + b * 512, mask=ml, other=0)
        xh = tl.load(xp + b * 512 + 32, mask=mh, other=0)
        d = tl.load(wp + b * 68) >> sh
        dv = tl.load(dp + b * 8)
        p = tl.dot(_b8(((q0 >> 16) & 0xFFFF) | (q1 << 16), BN, 32), tl.trans(xl), out_dtype=tl.int32)
        p = tl.dot(_b8(q2, BN, 32), tl.trans(xh), p, out_dtype=tl.int32)
        acc += _half(d) * (_parts2(p, BN, 8) * dv[None, :])
    _finish(out, acc, s, i, r, R, n, S)


@triton.jit(do_not_specialize=["R", "n", "nblk", "nt", "S", "per", "TOPK"])
def _tc2(w, xq, dx, sx, ids, out, R, n, TOPK, nblk, nt, S, per, MOE: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    # two blocks are 9 words: d, 4 words of codes half a word off, d in the high half of word 4, 4 words of codes
    s, i, r, rr, xi = _place(ids, R, TOPK, nt, S, MOE, BN)
    hp = (w + rr * nblk * 36)[:, None]
    u = tl.arange(0, 16)
    qp = hp + ((u // 4) * 9 + u % 4)[None, :]
    j = tl.arange(0, 16)[:, None]
    c = tl.arange(0, 64)[None, :]
    xp = xq + xi * nblk * 512 + ((c // 16) * 64 + c % 16 + (j // 8) * 256)
    ml = (c // 16) * 2 == j % 8
    mh = (c // 16) * 2 + 1 == j % 8
    b8 = tl.arange(0, 8)
    dp = dx + xi * nblk * 8 + b8
    sp = sx + xi * nblk * 8 + b8
    wp = hp + ((b8 // 2) * 9 + (b8 % 2) * 4)[None, :]
    sh = ((b8 % 2) * 16)[None, :]
    acc = tl.zeros([BN, 8], tl.float32)
    for b in tl.range(s * per, tl.minimum(nblk, s * per + per), num_stages=NS):
        q0 = tl.load(qp + b * 36)
        q1 = tl.load(qp + (b * 36 + 1))
        q2 = tl.load(qp + (b * 36 + 5))
        x0 = tl.load(xp + b * 512, mask=ml, other=0)
        x1 = tl.load(xp + b * 512 + 16, mask=ml, other=0)
        x2 = tl.load(xp + b * 512 + 32, mask=mh, other=0)
        x3 = tl.load(xp + b * 512 + 48, mask=mh, other=0)
        d = tl.load(wp + b * 36) >> sh
        dv = tl.load(dp + b * 8)
        sv = tl.load(sp + b * 8)
        q0 = ((q0 >> 16) & 0xFFFF) | (q1 << 16)
        p = tl.dot(_b8(q0 & 0x0F0F0F0F, BN, 16), tl.trans(x0), out_dtype=tl.int32)
        p = tl.dot(_b8((q0 >> 4) & 0x0F0F0F0F, BN, 16), tl.trans(x1), p, out_dtype=tl.int32)
        p = tl.dot(_b8(q2 & 0x0F0F0F0F, BN, 16), tl.trans(x2), p, out_dtype=tl.int32)
        p = tl.dot(_b8((q2 >> 4) & 0x0F0F0F0F, BN, 16), tl.trans(x3), p, out_dtype=tl.int32)
        acc += _half(d) * (_parts2(p, BN, 8) * dv[None, :] - 8.0 * sv[None, :])
    _finish(out, acc, s, i, r, R, n, S)


@triton.jit
def _less32(v):
    # 32 less in each byte of a word, of codes from 0 to 63: nothing is carried to the next
    return (v + 0x60606060) ^ -2139062144


@triton.jit
def _odd(p, o, odd):
    # a word at p + o, half a word on where odd
    a = tl.load(p + o)
    b = tl.load(p + (o + 1))
    return tl.where(odd, ((a >> 16) & 0xFFFF) | (b << 16), a)


@triton.jit(do_not_specialize=["R", "n", "nblk", "nt", "S", "per", "TOPK"])
def _tc14(w, xq, dx, s8, ids, out, R, n, TOPK, nblk, nt, S, per, MOE: tl.constexpr, BN: tl.constexpr, NS: tl.constexpr):
    # two blocks are 105 words, the second begins in the middle of one; 16 half blocks of 16 values
    s, i, r, rr, xi = _place(ids, R, TOPK, nt, S, MOE, BN)
    hp = (w + rr * (nblk // 2) * 105)[:, None]
    u = tl.arange(0, 16)
    q0p = hp + ((u // 8) * 16 + u % 8)[None, :]
    qhp = hp + (32 + u)[None, :]
    scp = hp + (48 + u // 4)[None, :]
    sh = ((u % 4) * 8)[None, :]
    j = tl.arange(0, 32)[:, None]
    c = tl.arange(0, 64)[None, :]
    xp = xq + xi * nblk * 512 + ((c // 32) * 128 + c % 32 + (j // 16) * 256)
    jc = (c // 32) * 8 + (c // 16) % 2
    jj = j % 16
    dp = dx + xi * nblk * 8 + u // 2
    acc = tl.zeros([BN, 16], tl.float32)
    for b in tl.range(s * per, tl.minimum(nblk, s * per + per), num_stages=NS):
        o = (b * 105) // 2
        odd = b % 2 == 1
        q0 = _odd(q0p, o, odd)
        q1 = _odd(q0p + 8, o, odd)
        qh = _odd(qhp, o, odd)
        sc = (_odd(scp, o, odd) << (24 - sh)) >> 24
        d = tl.load(hp + ((b * 105 + 104) // 2))
        d = _half(tl.where(odd, d >> 16, d))
        x0 = tl.load(xp + b * 512, mask=jc == jj, other=0)
        x1 = tl.load(xp + b * 512 + 32, mask=jc + 2 == jj, other=0)
        x2 = tl.load(xp + b * 512 + 64, mask=jc + 4 == jj, other=0)
        x3 = tl.load(xp + b * 512 + 96, mask=jc + 6 == jj, other=0)
        dv = tl.load(dp + b * 8)
        p = tl.dot(_b8(_less32((q0 & 0x0F0F0F0F) | ((qh << 4) & 0x30303030)), BN, 16), tl.trans(x0), out_dtype=tl.int32)
        p = tl.dot(_b8(_less32((q1 & 0x0F0F0F0F) | ((qh << 2) & 0x30303030)), BN, 16), tl.trans(x1), p, out_dtype=tl.int32)
        p = tl.dot(_b8(_less32(((q0 >> 4) & 0x0F0F0F0F) | (qh & 0x30303030)), BN, 16), tl.trans(x2), p, out_dtype=tl.int32)
        p = tl.dot(_b8(_less32(((q1 >> 4) & 0x0F0F0F0F) | ((qh >> 2) & 0x30303030)), BN, 16), tl.trans(x3), p, out_dtype=tl.int32)
        acc += d * (sc.to(tl.float32) * (_parts2(p, BN, 16) * dv[None, :]))
    _finish(out, acc, s, i, r, R, n, S)


@triton.jit(do_not_specialize=["total", "S"])
def _add_up(part, out, total, S, BE: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    m = o < total
    a = tl.zeros([BE], tl.float32)
    for s in range(0, S):
        a += tl.load(part + s * total.to(tl.int64) + o, mask=m, other=0.0)
    tl.store(out + o, a.to(out.dtype.element_ty), mask=m)


def _tensor_cores(t, wf, x, ids, out, R, K, n, top_k, MOE):
    # whether one of the kernels for tensor cores did it
    if t not in (2, 8, 12, 14) or K % 256 or R < 64 or x.dtype == torch.float32 or wf.data_ptr() % 16:
        return False
    nblk = K // 256
    nx = x.numel() // 256
    nt = triton.cdiv(R, 64)
    if (t == 14 and nblk % 2) or nx > 2 ** 18 or nt * n >= 2 ** 24 or wf.storage_offset() % 4 or wf.numel() % 4:
        return False
    dev = x.device
    xq = torch.empty((nx * 512,), dtype=torch.int8, device=dev)
    dx = torch.empty((nx * 8,), dtype=torch.float32, device=dev)
    sx = torch.empty((nx * 8,), dtype=torch.float32, device=dev)
    s8 = torch.empty((nx * 16,), dtype=torch.float32, device=dev)
    _quant[(nx,)](x, xq, dx, sx, s8, NSB=8, num_warps=1)
    # few programs: sums are cut into pieces
    S = 1
    if nt * n < 100:
        S = max(1, min(nblk // 4, triton.cdiv(264, nt * n)))
    per = triton.cdiv(nblk, S)
    S = triton.cdiv(nblk, per)
    dst = out if S == 1 else torch.empty((S * n * R,), dtype=torch.float32, device=dev)
    ww = wf.view(torch.int32)
    grid = (nt * n * S,)
    if t == 12:
        _tc12[grid](ww, xq, dx, sx, ids, dst, R, n, top_k, nblk, nt, S, per, MOE=MOE, BN=64, NS=4, num_warps=4)
    elif t == 8:
        _tc8[grid](ww, xq, dx, ids, dst, R, n, top_k, nblk, nt, S, per, MOE=MOE, BN=64, NS=3, num_warps=4)
    elif t == 14:
        _tc14[grid](ww, xq, dx, s8, ids, dst, R, n, top_k, nblk, nt, S, per, MOE=MOE, BN=64, NS=3, num_warps=4)
    else:
        _tc2[grid](ww, xq, dx, sx, ids, dst, R, n, top_k, nblk, nt, S, per, MOE=MOE, BN=64, NS=4, num_warps=4)
    if S > 1:
        _add_up[(triton.cdiv(n * R, 256),)](dst, out, n * R, S, BE=256, num_warps=2)
    return True


def ggml_moe_a8_vec(X, W, topk_ids, top_k, type, row, tokens):
    K = X.shape[1]
    R = int(row)
    t = int(type)
    top_k = int(top_k)
    n = int(tokens) * top_k
    out = torch.empty((n, R), dtype=X.dtype, device=X.device)
    if n == 0 or R == 0:
        return out
    if K == 0:
        out.fill_(0)
        return out
    x = X if X.is_contiguous() else X.contiguous()
    w = W if W.is_contiguous() else W.contiguous()
    ids = topk_ids if topk_ids.is_contiguous() else topk_ids.contiguous()
    wf = w.view(-1)
    vals, nbytes = _BLOCK[t]
    rowbytes = K // vals * nbytes
    if _tensor_cores(t, wf, x, ids, out, R, K, n, top_k, True):
        return out
    if _fast(t, wf, x, ids, out, R, K, n, top_k, rowbytes, True):
        return out
    RB = 4
    ww = None
    if t == 12:
        ww = _words(wf, torch.int32, 4)
        unit, block = 64, _pow2(K // 64, 16, 64)
    elif t == 8:
        ww = _words(wf, torch.int16, 2)
        unit, block = 32, _pow2(K // 32, 16, 64)
    if ww is None:
        unit, block = 32, _pow2(K // 32, 16, 32)
    steps = triton.cdiv(K // unit, block)
    nrb = triton.cdiv(R, RB)
    progs = nrb * n
    pieces = 1
    if progs < 264 and K >= 65536:
        # long sums of few results are cut into pieces, which are added up afterwards
        pieces = min(triton.cdiv(1056, progs), steps // 8)
    per = triton.cdiv(steps, pieces)
    pieces = triton.cdiv(steps, per)
    per *= block
    big = K >= 2 ** 30
    total = n * R
    dst = torch.empty((pieces, total), dtype=torch.float32, device=X.device) if pieces > 1 else out
    if ww is not None and t == 12:
        _mv12[(progs, pieces)](ww, x, ids, dst, R, K, top_k, rowbytes // 4, nrb, per, total, BIG=big, MOE=True, RB=RB,
                               NGB=block, num_warps=4)
    elif ww is not None:
        _mv8[(progs, pieces)](ww, x, ids, dst, R, K, top_k, rowbytes // 2, nrb, per, total, BIG=big, MOE=True, RB=RB,
                              NBB=block, num_warps=4)
    else:
        _mv_any[(progs, pieces)](wf, x, ids, dst, R, K, top_k, rowbytes, nrb, per, total, BIG=big, MOE=True, TYPE=t,
                                 CPB=vals // 32, BYTES=nbytes, RB=RB, NC=block, num_warps=4)
    if pieces > 1:
        _sum_pieces[(triton.cdiv(total, 32),)](dst, out, total, pieces, BE=32, BS=32, num_warps=4)
    return out



