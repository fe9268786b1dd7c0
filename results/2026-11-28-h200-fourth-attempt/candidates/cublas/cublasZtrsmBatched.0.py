"""cublasZtrsmBatched: op(A) X = alpha B or X op(A) = alpha B for a batch behind arrays of pointers, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. A block solves R right-hand sides of one M: it goes through the rows of Z in blocks of T, takes off what the
solved blocks give, and then eliminates inside the block, row after row. Only the triangle that is given is read. Real and
imaginary parts are tiles of their own.
"""
import struct

import torch
import triton
import triton.language as tl


def _bits(v):
    """The bits of a float64 as an integer: a Python float would reach a kernel as float32."""
    return struct.unpack("<q", struct.pack("<d", float(v)))[0]


@triton.jit
def _f64(bits):
    return bits.to(tl.int64).to(tl.float64, bitcast=True)


@triton.jit(do_not_specialize=["order", "rhs", "alr", "ali", "lda", "ldb", "unit", "sign"])
def _solve(Aarray, Barray, order, rhs, alr, ali, lda, ldb, unit, sign,
           AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr, R: tl.constexpr):
    ar = _f64(alr)
    ai = _f64(ali)
    la = lda.to(tl.int64) * 2
    lb = ldb.to(tl.int64) * 2
    nr = tl.cdiv(rhs, R)
    pid = tl.program_id(0)
    batch = (pid // nr).to(tl.int64)
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), 16)
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), 16)
    rt = tl.arange(0, T)
    col = (pid % nr) * R + tl.arange(0, R).to(tl.int64)
    cmask = col < rhs
    blocks = tl.cdiv(order, T)
    for step in range(0, blocks):
        if UPPER:
            t = blocks - 1 - step
        else:
            t = step
        row = t * T + rt.to(tl.int64)
        rmask = row < order
        if BT:
            pb = b + row[:, None] * lb + col[None, :] * 2
        else:
            pb = b + row[:, None] * 2 + col[None, :] * lb
        bmask = rmask[:, None] & cmask[None, :]
        br = tl.load(pb, mask=bmask, other=0.0)
        bi = tl.load(pb + 1, mask=bmask, other=0.0)
        # the solved blocks
        rr = tl.zeros((T, R), dtype=tl.float64)
        ii = tl.zeros((T, R), dtype=tl.float64)
        ri = tl.zeros((T, R), dtype=tl.float64)
        for l in range(0, step):
            if UPPER:
                u = blocks - 1 - l
            else:
                u = l
            inner = u * T + rt.to(tl.int64)
            imask = inner < order
            if AT:
                pm = a + row[:, None] * la + inner[None, :] * 2
            else:
                pm = a + row[:, None] * 2 + inner[None, :] * la
            if BT:
                pz = b + inner[:, None] * lb + col[None, :] * 2
            else:
                pz = b + inner[:, None] * 2 + col[None, :] * lb
            mmask = rmask[:, None] & imask[None, :]
            zmask = imask[:, None] & cmask[None, :]
            mr = tl.load(pm, mask=mmask, other=0.0)
            mi = tl.load(pm + 1, mask=mmask, other=0.0) * sign
            xr = tl.load(pz, mask=zmask, other=0.0)
            xi = tl.load(pz + 1, mask=zmask, other=0.0)
            rr = tl.dot(mr, xr, rr, input_precision="ieee", out_dtype=tl.float64)
            ii = tl.dot(mi, xi, ii, input_precision="ieee", out_dtype=tl.float64)
            ri = tl.dot(mr, xi, ri, input_precision="ieee", out_dtype=tl.float64)
            ri = tl.dot(mi, xr, ri, input_precision="ieee", out_dtype=tl.float64)
        zr = (br * ar - bi * ai) - (rr - ii)
        zi = (br * ai + bi * ar) - ri
        # elimination inside the block
        for q in tl.static_range(T):
            if UPPER:
                p = T - 1 - q
                rest = rt < p
            else:
                p = q
                rest = rt > p
            g = t.to(tl.int64) * T + p
            if AT:
                pc = a + row * la + g * 2
            else:
                pc = a + row * 2 + g * la
            need = rest & rmask & (g < order)
            cr = tl.load(pc, mask=need, other=0.0)[:, None]
            ci = (tl.load(pc + 1, mask=need, other=0.0) * sign)[:, None]
            pd = a + g * (la + 2)
            has = (unit == 0) & (g < order)
            dr = tl.load(pd, mask=has, other=1.0)
            di = tl.load(pd + 1, mask=has, other=0.0) * sign
            # 1 / d with the larger part scaled to 1
            scale = tl.maximum(tl.abs(dr), tl.abs(di))
            dr = dr / scale
            di = di / scale
            den = (dr * dr + di * di) * scale
            hit = (rt == p)[:, None]
            nr_ = tl.sum(tl.where(hit, zr, 0.0), axis=0)
            ni = tl.sum(tl.where(hit, zi, 0.0), axis=0)
            vr = ((nr_ * dr + ni * di) / den)[None, :]
            vi = ((ni * dr - nr_ * di) / den)[None, :]
            rest2 = rest[:, None]
            zr = tl.where(hit, vr, tl.where(rest2, zr - (cr * vr - ci * vi), zr))
            zi = tl.where(hit, vi, tl.where(rest2, zi - (cr * vi + ci * vr), zi))
        tl.store(pb, zr, mask=bmask)
        tl.store(pb + 1, zi, mask=bmask)
        tl.debug_barrier()


@triton.jit
def _get(p, mask, EVEN: tl.constexpr):
    # one complex number a lane
    c = tl.arange(0, 2)
    q = p[:, None] + c[None, :]
    if EVEN:
        v = tl.load(q)
    else:
        v = tl.load(q, mask=mask & (q.to(tl.int64) != 0), other=0.0)
    return tl.split(v)


@triton.jit
def _put(p, re, im, mask):
    q = p[:, None] + tl.arange(0, 2)[None, :]
    tl.store(q, tl.join(re, im), mask=mask[:, None] & (tl.arange(0, 2) < 2)[None, :])


@triton.jit
def _less(zr, zi, p, xr, xi, mask, CONJ: tl.constexpr, EVEN: tl.constexpr):
    # z - a x
    ar, ai = _get(p, mask, EVEN)
    if CONJ:
        ai = -ai
    return zr - ar * xr + ai * xi, zi - ar * xi - ai * xr


@triton.jit
def _over(zr, zi, p, mask, CONJ: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr):
    # z / a
    if UNIT:
        return zr, zi
    dr, di = _get(p, mask, EVEN)
    if CONJ:
        di = -di
    if not EVEN:
        dr = tl.where(mask, dr, 1.0)
    f = 1.0 / (dr * dr + di * di)
    dr = dr * f
    di = di * f
    return zr * dr + zi * di, zi * dr - zr * di


@triton.jit
def _start(p, ar, ai, mask, EVEN: tl.constexpr):
    br, bi = _get(p, mask, EVEN)
    return br * ar - bi * ai, br * ai + bi * ar


@triton.jit(do_not_specialize=["order", "rhs", "total", "alr", "ali", "aoff", "ars", "acs", "boff", "brs", "bcs"])
def _lanes(Aarray, Barray, order, rhs, total, alr, ali, aoff, ars, acs, boff, brs, bcs,
           CONJ: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr, LN: tl.constexpr):
    # A lane solves one right-hand side by substitution, 8 rows at a time. Rows and columns are numbered in the order
    # in which they are solved: for an upper triangle the strides are negative.
    alr = _f64(alr)
    ali = _f64(ali)
    ars = ars.to(tl.int64) * 2
    acs = acs.to(tl.int64) * 2
    brs = brs.to(tl.int64) * 2
    bcs = bcs.to(tl.int64) * 2
    idx = tl.program_id(0).to(tl.int64) * LN + tl.arange(0, LN)
    ok = idx < total
    idx = tl.minimum(idx, total - 1)
    batch = idx // rhs
    col = idx - batch * rhs
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), [16]) + aoff.to(tl.int64) * 2
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), [16]) + (boff.to(tl.int64) * 2 + col * bcs)
    for t0 in range(0, order, 8):
        m0 = t0 + 0 < order
        m1 = t0 + 1 < order
        m2 = t0 + 2 < order
        m3 = t0 + 3 < order
        m4 = t0 + 4 < order
        m5 = t0 + 5 < order
        m6 = t0 + 6 < order
        m7 = t0 + 7 < order
        at = a + t0 * ars
        bt = b + t0 * brs
        r0, i0 = _start(bt + 0 * brs, alr, ali, m0, EVEN)
        r1, i1 = _start(bt + 1 * brs, alr, ali, m1, EVEN)
        r2, i2 = _start(bt + 2 * brs, alr, ali, m2, EVEN)
        r3, i3 = _start(bt + 3 * brs, alr, ali, m3, EVEN)
        r4, i4 = _start(bt + 4 * brs, alr, ali, m4, EVEN)
        r5, i5 = _start(bt + 5 * brs, alr, ali, m5, EVEN)
        r6, i6 = _start(bt + 6 * brs, alr, ali, m6, EVEN)
        r7, i7 = _start(bt + 7 * brs, alr, ali, m7, EVEN)
        for k in range(0, t0, 2):
            ak = at + k * acs
            xr, xi = _get(b + k * brs, True, True)
            yr, yi = _get(b + (k + 1) * brs, True, True)
            r0, i0 = _less(r0, i0, ak + 0 * ars, xr, xi, m0, CONJ, EVEN)
            r1, i1 = _less(r1, i1, ak + 1 * ars, xr, xi, m1, CONJ, EVEN)
            r2, i2 = _less(r2, i2, ak + 2 * ars, xr, xi, m2, CONJ, EVEN)
            r3, i3 = _less(r3, i3, ak + 3 * ars, xr, xi, m3, CONJ, EVEN)
            r4, i4 = _less(r4, i4, ak + 4 * ars, xr, xi, m4, CONJ, EVEN)
            r5, i5 = _less(r5, i5, ak + 5 * ars, xr, xi, m5, CONJ, EVEN)
            r6, i6 = _less(r6, i6, ak + 6 * ars, xr, xi, m6, CONJ, EVEN)
            r7, i7 = _less(r7, i7, ak + 7 * ars, xr, xi, m7, CONJ, EVEN)
            ak = ak + acs
            r0, i0 = _less(r0, i0, ak + 0 * ars, yr, yi, m0, CONJ, EVEN)
            r1, i1 = _less(r1, i1, ak + 1 * ars, yr, yi, m1, CONJ, EVEN)
            r2, i2 = _less(r2, i2, ak + 2 * ars, yr, yi, m2, CONJ, EVEN)
            r3, i3 = _less(r3, i3, ak + 3 * ars, yr, yi, m3, CONJ, EVEN)
            r4, i4 = _less(r4, i4, ak + 4 * ars, yr, yi, m4, CONJ, EVEN)
            r5, i5 = _less(r5, i5, ak + 5 * ars, yr, yi, m5, CONJ, EVEN)
            r6, i6 = _less(r6, i6, ak + 6 * ars, yr, yi, m6, CONJ, EVEN)
            r7, i7 = _less(r7, i7, ak + 7 * ars, yr, yi, m7, CONJ, EVEN)
        ak = at + t0 * acs
        r0, i0 = _over(r0, i0, ak + 0 * ars, m0, CONJ, UNIT, EVEN)
        r1, i1 = _less(r1, i1, ak + 1 * ars, r0, i0, m1, CONJ, EVEN)
        r2, i2 = _less(r2, i2, ak + 2 * ars, r0, i0, m2, CONJ, EVEN)
        r3, i3 = _less(r3, i3, ak + 3 * ars, r0, i0, m3, CONJ, EVEN)
        r4, i4 = _less(r4, i4, ak + 4 * ars, r0, i0, m4, CONJ, EVEN)
        r5, i5 = _less(r5, i5, ak + 5 * ars, r0, i0, m5, CONJ, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r0, i0, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r0, i0, m7, CONJ, EVEN)
        ak = ak + acs
        r1, i1 = _over(r1, i1, ak + 1 * ars, m1, CONJ, UNIT, EVEN)
        r2, i2 = _less(r2, i2, ak + 2 * ars, r1, i1, m2, CONJ, EVEN)
        r3, i3 = _less(r3, i3, ak + 3 * ars, r1, i1, m3, CONJ, EVEN)
        r4, i4 = _less(r4, i4, ak + 4 * ars, r1, i1, m4, CONJ, EVEN)
        r5, i5 = _less(r5, i5, ak + 5 * ars, r1, i1, m5, CONJ, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r1, i1, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r1, i1, m7, CONJ, EVEN)
        ak = ak + acs
        r2, i2 = _over(r2, i2, ak + 2 * ars, m2, CONJ, UNIT, EVEN)
        r3, i3 = _less(r3, i3, ak + 3 * ars, r2, i2, m3, CONJ, EVEN)
        r4, i4 = _less(r4, i4, ak + 4 * ars, r2, i2, m4, CONJ, EVEN)
        r5, i5 = _less(r5, i5, ak + 5 * ars, r2, i2, m5, CONJ, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r2, i2, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r2, i2, m7, CONJ, EVEN)
        ak = ak + acs
        r3, i3 = _over(r3, i3, ak + 3 * ars, m3, CONJ, UNIT, EVEN)
        r4, i4 = _less(r4, i4, ak + 4 * ars, r3, i3, m4, CONJ, EVEN)
        r5, i5 = _less(r5, i5, ak + 5 * ars, r3, i3, m5, CONJ, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r3, i3, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r3, i3, m7, CONJ, EVEN)
        ak = ak + acs
        r4, i4 = _over(r4, i4, ak + 4 * ars, m4, CONJ, UNIT, EVEN)
        r5, i5 = _less(r5, i5, ak + 5 * ars, r4, i4, m5, CONJ, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r4, i4, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r4, i4, m7, CONJ, EVEN)
        ak = ak + acs
        r5, i5 = _over(r5, i5, ak + 5 * ars, m5, CONJ, UNIT, EVEN)
        r6, i6 = _less(r6, i6, ak + 6 * ars, r5, i5, m6, CONJ, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r5, i5, m7, CONJ, EVEN)
        ak = ak + acs
        r6, i6 = _over(r6, i6, ak + 6 * ars, m6, CONJ, UNIT, EVEN)
        r7, i7 = _less(r7, i7, ak + 7 * ars, r6, i6, m7, CONJ, EVEN)
        ak = ak + acs
        r7, i7 = _over(r7, i7, ak + 7 * ars, m7, CONJ, UNIT, EVEN)
        _put(bt + 0 * brs, r0, i0, ok & m0)
        _put(bt + 1 * brs, r1, i1, ok & m1)
        _put(bt + 2 * brs, r2, i2, ok & m2)
        _put(bt + 3 * brs, r3, i3, ok & m3)
        _put(bt + 4 * brs, r4, i4, ok & m4)
        _put(bt + 5 * brs, r5, i5, ok & m5)
        _put(bt + 6 * brs, r6, i6, ok & m6)
        _put(bt + 7 * brs, r7, i7, ok & m7)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "n", "ldb"])
def _zero(Barray, m, n, ldb, BM: tl.constexpr, BN: tl.constexpr):
    tm = tl.cdiv(m * 2, BM)
    tn = tl.cdiv(n, BN)
    pid = tl.program_id(0)
    b = tl.load(Barray + pid // (tm * tn)).to(tl.pointer_type(tl.float64))
    t = pid % (tm * tn)
    rows = (t % tm).to(tl.int64) * BM + tl.arange(0, BM)
    cols = (t // tm).to(tl.int64) * BN + tl.arange(0, BN)
    mask = (cols < n)[:, None] & (rows < m * 2)[None, :]
    tl.store(b + cols[:, None] * ldb * 2 + rows[None, :], tl.zeros((BN, BM), dtype=tl.float64), mask=mask)


def cublasZtrsmBatched(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha = complex(alpha)
    if alpha == 0:
        _zero[(triton.cdiv(2 * m, 32) * triton.cdiv(n, 16) * batchCount,)](Barray, m, n, ldb, BM=32, BN=16, num_warps=4)
        return
    right = side == "R"
    order, rhs = (n, m) if right else (m, n)
    at = (trans != "N") != right  # M is stored transposed
    upper = (uplo == "U") != at
    if order % 8 == 0 and order <= 256 and batchCount * rhs >= 8192:
        ars, acs = (lda, 1) if at else (1, lda)
        brs, bcs = (ldb, 1) if right else (1, ldb)
        aoff = boff = 0
        if upper:
            aoff, boff = (order - 1) * (lda + 1), (order - 1) * brs
            ars, acs, brs = -ars, -acs, -brs
        total = batchCount * rhs
        _lanes[(triton.cdiv(total, 32),)](Aarray, Barray, order, rhs, total, _bits(alpha.real), _bits(alpha.imag),
                                          aoff, ars, acs, boff, brs, bcs, CONJ=trans == "C", UNIT=diag == "U",
                                          EVEN=order % 8 == 0, LN=32, num_warps=1)
        return
    R = 16
    _solve[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, order, rhs, _bits(alpha.real), _bits(alpha.imag), lda, ldb,
                                                int(diag == "U"), -1.0 if trans == "C" else 1.0,
                                                AT=at, BT=right, UPPER=upper, T=16, R=R, num_warps=1, num_stages=2)

