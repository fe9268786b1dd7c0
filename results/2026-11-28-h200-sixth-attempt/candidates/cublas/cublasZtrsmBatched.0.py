"""cublasZtrsmBatched: op(A) X = alpha B or X op(A) = alpha B for a batch behind arrays of pointers, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. A program solves R right-hand sides of one M: it goes through the rows of Z in blocks of 16, takes off what the
solved blocks give, and multiplies with the inverse of the diagonal block. With a block D + L = D (I - N), N is strictly
triangular, N^16 = 0, so the inverse is (I + N^8) (I + N^4) (I + N^2) (I + N) / D: products of tiles alone. Only the triangle
that is given is read. Real and imaginary parts are tiles of their own.
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


@triton.jit
def _dot(a, b, c):
    return tl.dot(a, b, c, input_precision="ieee", out_dtype=tl.float64)


@triton.jit
def _mul(ar, ai, br, bi, cr, ci):
    # c + a b
    cr = _dot(ar, br, cr)
    cr = _dot(0.0 - ai, bi, cr)
    ci = _dot(ar, bi, ci)
    ci = _dot(ai, br, ci)
    return cr, ci


@triton.jit
def _get(p, i, j, si, sj, mi, mj, TRI: tl.constexpr, FLIP: tl.constexpr):
    # complex elements (i, j) at p + i si + j sj; FLIP: i is the contiguous one, and is put last for loading
    # TRI: 1 i > j alone, 2 i < j alone
    c = tl.arange(0, 2)
    if FLIP:
        q = p + (j[:, None] * sj + i[None, :] * si)
        m = mj[:, None] & mi[None, :]
        if TRI == 1:
            m = m & (i[None, :] > j[:, None])
        if TRI == 2:
            m = m & (i[None, :] < j[:, None])
    else:
        q = p + (i[:, None] * si + j[None, :] * sj)
        m = mi[:, None] & mj[None, :]
        if TRI == 1:
            m = m & (i[:, None] > j[None, :])
        if TRI == 2:
            m = m & (i[:, None] < j[None, :])
    v = tl.load(q[:, :, None] + c[None, None, :], mask=m[:, :, None], other=0.0)
    re, im = tl.split(v)
    if FLIP:
        re = tl.trans(re)
        im = tl.trans(im)
    return re, im


@triton.jit
def _put(p, i, j, si, sj, mi, mj, re, im, FLIP: tl.constexpr):
    c = tl.arange(0, 2)
    if FLIP:
        q = p + (j[:, None] * sj + i[None, :] * si)
        m = mj[:, None] & mi[None, :]
        re = tl.trans(re)
        im = tl.trans(im)
    else:
        q = p + (i[:, None] * si + j[None, :] * sj)
        m = mi[:, None] & mj[None, :]
    tl.store(q[:, :, None] + c[None, None, :], tl.join(re, im), mask=m[:, :, None])


@triton.jit
def _recip(p, mask, CONJ: tl.constexpr):
    # 1 / d by Newton steps: |d| is 1 to 2
    dr = tl.load(p, mask=mask, other=1.0)
    di = tl.load(p + 1, mask=mask, other=0.0)
    if CONJ:
        di = -di
    v = dr * dr + di * di
    f = (1.0 / v.to(tl.float32)).to(tl.float64)
    f = f + f * (1.0 - v * f)
    f = f + f * (1.0 - v * f)
    f = f + f * (1.0 - v * f)
    return dr * f, -(di * f)


@triton.jit
def _inverse(a, t, order, ars, acs, AT: tl.constexpr, UPPER: tl.constexpr, UNIT: tl.constexpr, CONJ: tl.constexpr,
             IT: tl.constexpr, T: tl.constexpr):
    # the inverse of diagonal block t
    rt = tl.arange(0, T)
    row = t * T + rt.to(IT)
    ok = row < order
    nr, ni = _get(a, row, row, ars, acs, ok, ok, 2 if UPPER else 1, not AT)
    nr = -nr
    if not CONJ:
        ni = -ni
    if not UNIT:
        dr, di = _recip(a + row * (ars + acs), ok, CONJ)
        xr = dr[:, None]
        xi = di[:, None]
        t0 = nr * xr - ni * xi
        ni = nr * xi + ni * xr
        nr = t0
    z = tl.zeros((T, T), dtype=tl.float64)
    pr = nr + tl.where(rt[:, None] == rt[None, :], 1.0, 0.0)
    pi = ni
    for k in tl.static_range(3):
        nr, ni = _mul(nr, ni, nr, ni, z, z)
        pr, pi = _mul(nr, ni, pr, pi, pr, pi)
    if not UNIT:
        xr = dr[None, :]
        xi = di[None, :]
        t0 = pr * xr - pi * xi
        pi = pr * xi + pi * xr
        pr = t0
    return pr, pi


@triton.jit(do_not_specialize=["order", "blocks", "lda"])
def _invert(Aarray, inv, order, blocks, lda, AT: tl.constexpr, UPPER: tl.constexpr, UNIT: tl.constexpr,
            CONJ: tl.constexpr, IT: tl.constexpr, T: tl.constexpr):
    # row-major, the real parts, then the imaginary ones
    if AT:
        ars = lda.to(IT) * 2
        acs = 2
    else:
        ars = 2
        acs = lda.to(IT) * 2
    pid = tl.program_id(0)
    a = tl.multiple_of(tl.load(Aarray + pid // blocks).to(tl.pointer_type(tl.float64)), 16)
    zr, zi = _inverse(a, pid % blocks, order, ars, acs, AT, UPPER, UNIT, CONJ, IT, T)
    rt = tl.arange(0, T)
    p = inv + pid.to(tl.int64) * (2 * T * T) + rt[:, None] * T + rt[None, :]
    tl.store(p, zr)
    tl.store(p + T * T, zi)


@triton.jit(do_not_specialize=["order", "rhs", "alr", "ali", "lda", "ldb"])
def _solve(Aarray, Barray, inv, order, rhs, alr, ali, lda, ldb, AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr,
           UNIT: tl.constexpr, CONJ: tl.constexpr, FUSED: tl.constexpr, IT: tl.constexpr, T: tl.constexpr, R: tl.constexpr):
    ar = _f64(alr)
    ai = _f64(ali)
    if AT:
        ars = lda.to(IT) * 2
        acs = 2
    else:
        ars = 2
        acs = lda.to(IT) * 2
    if BT:
        brs = ldb.to(IT) * 2
        bcs = 2
    else:
        brs = 2
        bcs = ldb.to(IT) * 2
    nr = tl.cdiv(rhs, R)
    pid = tl.program_id(0)
    batch = (pid // nr).to(tl.int64)
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), 16)
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), 16)
    rt = tl.arange(0, T)
    col = (pid % nr) * R + tl.arange(0, R).to(IT)
    cmask = col < rhs
    blocks = tl.cdiv(order, T)
    for step in range(0, blocks):
        if UPPER:
            t = blocks - 1 - step
        else:
            t = step
        row = t * T + rt.to(IT)
        rmask = row < order
        br, bi = _get(b, row, col, brs, bcs, rmask, cmask, 0, not BT)
        if FUSED:
            wr, wi = _inverse(a, t, order, ars, acs, AT, UPPER, UNIT, CONJ, IT, T)
        else:
            pw = inv + (batch * blocks + t) * (2 * T * T) + rt[:, None] * T + rt[None, :]
            wr = tl.load(pw)
            wi = tl.load(pw + T * T)
        yr = br * ar - bi * ai
        yi = br * ai + bi * ar
        # the solved blocks
        for l in range(0, step):
            if UPPER:
                u = blocks - 1 - l
            else:
                u = l
            inner = u * T + rt.to(IT)
            imask = inner < order
            mr, mi = _get(a, row, inner, ars, acs, rmask, imask, 0, not AT)
            xr, xi = _get(b, inner, col, brs, bcs, imask, cmask, 0, not BT)
            mr = 0.0 - mr
            if not CONJ:
                mi = 0.0 - mi
            yr, yi = _mul(mr, mi, xr, xi, yr, yi)
        z = tl.zeros((T, R), dtype=tl.float64)
        zr, zi = _mul(wr, wi, yr, yi, z, z)
        _put(b, row, col, brs, bcs, rmask, cmask, zr, zi, not BT)
        tl.debug_barrier()


@triton.jit
def _lget(p, mask, EVEN: tl.constexpr):
    # one complex number a lane
    c = tl.arange(0, 2)
    q = p[:, None] + c[None, :]
    if EVEN:
        v = tl.load(q)
    else:
        v = tl.load(q, mask=mask & (q.to(tl.int64) != 0), other=0.0)
    return tl.split(v)


@triton.jit
def _lput(p, re, im, mask):
    q = p[:, None] + tl.arange(0, 2)[None, :]
    tl.store(q, tl.join(re, im), mask=mask[:, None] & (tl.arange(0, 2) < 2)[None, :])


@triton.jit
def _less(zr, zi, p, xr, xi, mask, CONJ: tl.constexpr, EVEN: tl.constexpr):
    # z - a x
    ar, ai = _lget(p, mask, EVEN)
    if CONJ:
        ai = -ai
    return zr - ar * xr + ai * xi, zi - ar * xi - ai * xr


@triton.jit
def _over(zr, zi, p, mask, CONJ: tl.constexpr, UNIT: tl.constexpr, EVEN: tl.constexpr):
    # z / a
    if UNIT:
        return zr, zi
    dr, di = _lget(p, mask, EVEN)
    if CONJ:
        di = -di
    if not EVEN:
        dr = tl.where(mask, dr, 1.0)
    v = dr * dr + di * di
    f = (1.0 / v.to(tl.float32)).to(tl.float64)
    f = f + f * (1.0 - v * f)
    f = f + f * (1.0 - v * f)
    f = f + f * (1.0 - v * f)
    dr = dr * f
    di = di * f
    return zr * dr + zi * di, zi * dr - zr * di


@triton.jit
def _start(p, ar, ai, mask, EVEN: tl.constexpr):
    br, bi = _lget(p, mask, EVEN)
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
            xr, xi = _lget(b + k * brs, True, True)
            yr, yi = _lget(b + (k + 1) * brs, True, True)
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
        _lput(bt + 0 * brs, r0, i0, ok & m0)
        _lput(bt + 1 * brs, r1, i1, ok & m1)
        _lput(bt + 2 * brs, r2, i2, ok & m2)
        _lput(bt + 3 * brs, r3, i3, ok & m3)
        _lput(bt + 4 * brs, r4, i4, ok & m4)
        _lput(bt + 5 * brs, r5, i5, ok & m5)
        _lput(bt + 6 * brs, r6, i6, ok & m6)
        _lput(bt + 7 * brs, r7, i7, ok & m7)
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
    unit = diag == "U"
    conj = trans == "C"
    if order in (8, 16) and batchCount * rhs >= 8192:
        ars, acs = (lda, 1) if at else (1, lda)
        brs, bcs = (ldb, 1) if right else (1, ldb)
        aoff = boff = 0
        if upper:
            aoff, boff = (order - 1) * (lda + 1), (order - 1) * brs
            ars, acs, brs = -ars, -acs, -brs
        total = batchCount * rhs
        _lanes[(triton.cdiv(total, 32),)](Aarray, Barray, order, rhs, total, _bits(alpha.real), _bits(alpha.imag),
                                          aoff, ars, acs, boff, brs, bcs, CONJ=conj, UNIT=unit, EVEN=True, LN=32,
                                          num_warps=1, maxnreg=128)
        return
    T = 16
    # the largest offset, in float64s
    it = tl.int32 if 2 * (max(lda, ldb) + 1) * (max(order, rhs) + 64) < 2**31 else tl.int64
    if rhs <= 64 and (order <= 64 or batchCount >= 512):
        # a program inverts the diagonal blocks itself
        R = 16 if rhs <= 16 else 32 if rhs <= 32 else 64
        _solve[(batchCount,)](Aarray, Barray, Barray, order, rhs, _bits(alpha.real), _bits(alpha.imag), lda, ldb,
                              AT=at, BT=right, UPPER=upper, UNIT=unit, CONJ=conj, FUSED=True, IT=it, T=T, R=R,
                              num_warps=R // 16, num_stages=2)
        return
    R = 16
    blocks = triton.cdiv(order, T)
    inv = torch.empty((batchCount * blocks * 2 * T * T,), dtype=torch.float64, device=Barray.device)
    _invert[(batchCount * blocks,)](Aarray, inv, order, blocks, lda, AT=at, UPPER=upper, UNIT=unit, CONJ=conj, IT=it, T=T,
                                    num_warps=1)
    _solve[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, inv, order, rhs, _bits(alpha.real), _bits(alpha.imag),
                                                lda, ldb, AT=at, BT=right, UPPER=upper, UNIT=unit, CONJ=conj,
                                                FUSED=False, IT=it, T=T, R=R, num_warps=1, num_stages=2)
