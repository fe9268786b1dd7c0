"""cublasDtrsmBatched: op(A) X = alpha B or X op(A) = alpha B for a batch behind arrays of pointers, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. A block solves R right-hand sides of one M: it goes through the rows of Z in blocks of T, takes off what the
solved blocks give, and then eliminates inside the block, row after row. Only the triangle that is given is read.
Large triangles' diagonal blocks are inverted first, all at once.
Where there are many right-hand sides, each lane of a warp solves one of them instead.
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


@triton.jit(do_not_specialize=["order", "rhs", "alpha", "lda", "ldb", "unit"])
def _solve(Aarray, Barray, order, rhs, alpha, lda, ldb, unit,
           AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr, R: tl.constexpr):
    al = _f64(alpha)
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    nr = tl.cdiv(rhs, R)
    pid = tl.program_id(0)
    batch = (pid // nr).to(tl.int64)
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), 8)
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), 8)
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
            pb = b + row[:, None] * lb + col[None, :]
        else:
            pb = b + row[:, None] + col[None, :] * lb
        bmask = rmask[:, None] & cmask[None, :]
        z = tl.load(pb, mask=bmask, other=0.0) * al
        # the solved blocks
        done = tl.zeros((T, R), dtype=tl.float64)
        for l in range(0, step):
            if UPPER:
                u = blocks - 1 - l
            else:
                u = l
            inner = u * T + rt.to(tl.int64)
            imask = inner < order
            if AT:
                pm = a + row[:, None] * la + inner[None, :]
            else:
                pm = a + row[:, None] + inner[None, :] * la
            if BT:
                pz = b + inner[:, None] * lb + col[None, :]
            else:
                pz = b + inner[:, None] + col[None, :] * lb
            mt = tl.load(pm, mask=rmask[:, None] & imask[None, :], other=0.0)
            zt = tl.load(pz, mask=imask[:, None] & cmask[None, :], other=0.0)
            done = tl.dot(mt, zt, done, input_precision="ieee", out_dtype=tl.float64)
        z = z - done
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
                pc = a + row * la + g
            else:
                pc = a + row + g * la
            c = tl.load(pc, mask=rest & rmask & (g < order), other=0.0)
            d = tl.load(a + g * (la + 1), mask=(unit == 0) & (g < order), other=1.0)
            hit = (rt == p)[:, None]
            x = tl.sum(tl.where(hit, z, 0.0), axis=0) / d
            z = tl.where(hit, x[None, :], tl.where(rest[:, None], z - c[:, None] * x[None, :], z))
        tl.store(pb, z, mask=bmask)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["order", "blocks", "lda", "unit"])
def _invert(Aarray, inv, order, blocks, lda, unit, AT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr):
    # the inverse of a diagonal block, row-major
    la = lda.to(tl.int64)
    pid = tl.program_id(0)
    t = pid % blocks
    a = tl.load(Aarray + pid // blocks).to(tl.pointer_type(tl.float64))
    rt = tl.arange(0, T)
    row = t * T + rt.to(tl.int64)
    rmask = row < order
    z = tl.where(rt[:, None] == rt[None, :], 1.0, 0.0).to(tl.float64)
    for q in tl.static_range(T):
        if UPPER:
            p = T - 1 - q
            rest = rt < p
        else:
            p = q
            rest = rt > p
        g = t.to(tl.int64) * T + p
        if AT:
            pc = a + row * la + g
        else:
            pc = a + row + g * la
        c = tl.load(pc, mask=rest & rmask & (g < order), other=0.0)
        d = tl.load(a + g * (la + 1), mask=(unit == 0) & (g < order), other=1.0)
        hit = (rt == p)[:, None]
        x = tl.sum(tl.where(hit, z, 0.0), axis=0) / d
        z = tl.where(hit, x[None, :], tl.where(rest[:, None], z - c[:, None] * x[None, :], z))
    tl.store(inv + pid.to(tl.int64) * (T * T) + rt[:, None] * T + rt[None, :], z)


@triton.jit(do_not_specialize=["order", "rhs", "alpha", "lda", "ldb"])
def _blocks(Aarray, Barray, inv, order, rhs, alpha, lda, ldb,
            AT: tl.constexpr, BT: tl.constexpr, UPPER: tl.constexpr, T: tl.constexpr, R: tl.constexpr):
    al = _f64(alpha)
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    nr = tl.cdiv(rhs, R)
    pid = tl.program_id(0)
    batch = (pid // nr).to(tl.int64)
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), 8)
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), 8)
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
            pb = b + row[:, None] * lb + col[None, :]
        else:
            pb = b + row[:, None] + col[None, :] * lb
        bmask = rmask[:, None] & cmask[None, :]
        z = tl.load(pb, mask=bmask, other=0.0) * al
        # the solved blocks
        done = tl.zeros((T, R), dtype=tl.float64)
        for l in range(0, step):
            if UPPER:
                u = blocks - 1 - l
            else:
                u = l
            inner = u * T + rt.to(tl.int64)
            imask = inner < order
            if AT:
                pm = a + row[:, None] * la + inner[None, :]
            else:
                pm = a + row[:, None] + inner[None, :] * la
            if BT:
                pz = b + inner[:, None] * lb + col[None, :]
            else:
                pz = b + inner[:, None] + col[None, :] * lb
            mt = tl.load(pm, mask=rmask[:, None] & imask[None, :], other=0.0)
            zt = tl.load(pz, mask=imask[:, None] & cmask[None, :], other=0.0)
            done = tl.dot(mt, zt, done, input_precision="ieee", out_dtype=tl.float64)
        w = tl.load(inv + (batch * blocks + t) * (T * T) + rt[:, None] * T + rt[None, :])
        z = tl.dot(w, z - done, input_precision="ieee", out_dtype=tl.float64)
        tl.store(pb, z, mask=bmask)
        tl.debug_barrier()


@triton.jit
def _get(p, mask, EVEN: tl.constexpr):
    if EVEN:
        return tl.load(p)
    return tl.load(p, mask=mask & (p.to(tl.int64) != 0), other=0.0)


@triton.jit
def _over(z, p, mask, UNIT: tl.constexpr, EVEN: tl.constexpr):
    # z / a
    if UNIT:
        return z
    d = _get(p, mask, EVEN)
    if not EVEN:
        d = tl.where(mask, d, 1.0)
    return z / d


@triton.jit(do_not_specialize=["order", "rhs", "total", "alpha", "aoff", "ars", "acs", "boff", "brs", "bcs"])
def _lanes(Aarray, Barray, order, rhs, total, alpha, aoff, ars, acs, boff, brs, bcs,
           UNIT: tl.constexpr, EVEN: tl.constexpr, LN: tl.constexpr):
    # A lane solves one right-hand side by substitution, 8 rows at a time. Rows and columns are numbered in the order
    # in which they are solved: for an upper triangle the strides are negative. (Longer pieces take minutes to compile.)
    al = _f64(alpha)
    ars = ars.to(tl.int64)
    acs = acs.to(tl.int64)
    brs = brs.to(tl.int64)
    bcs = bcs.to(tl.int64)
    idx = tl.program_id(0).to(tl.int64) * LN + tl.arange(0, LN)
    ok = idx < total
    idx = tl.minimum(idx, total - 1)
    batch = idx // rhs
    col = idx - batch * rhs
    a = tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)) + aoff.to(tl.int64)
    b = tl.load(Barray + batch).to(tl.pointer_type(tl.float64)) + (boff.to(tl.int64) + col * bcs)
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
        r0 = _get(bt + 0 * brs, m0, EVEN) * al
        r1 = _get(bt + 1 * brs, m1, EVEN) * al
        r2 = _get(bt + 2 * brs, m2, EVEN) * al
        r3 = _get(bt + 3 * brs, m3, EVEN) * al
        r4 = _get(bt + 4 * brs, m4, EVEN) * al
        r5 = _get(bt + 5 * brs, m5, EVEN) * al
        r6 = _get(bt + 6 * brs, m6, EVEN) * al
        r7 = _get(bt + 7 * brs, m7, EVEN) * al
        for k in range(0, t0, 2):
            ak = at + k * acs
            x = tl.load(b + k * brs)
            y = tl.load(b + (k + 1) * brs)
            r0 -= _get(ak + 0 * ars, m0, EVEN) * x
            r1 -= _get(ak + 1 * ars, m1, EVEN) * x
            r2 -= _get(ak + 2 * ars, m2, EVEN) * x
            r3 -= _get(ak + 3 * ars, m3, EVEN) * x
            r4 -= _get(ak + 4 * ars, m4, EVEN) * x
            r5 -= _get(ak + 5 * ars, m5, EVEN) * x
            r6 -= _get(ak + 6 * ars, m6, EVEN) * x
            r7 -= _get(ak + 7 * ars, m7, EVEN) * x
            ak = ak + acs
            r0 -= _get(ak + 0 * ars, m0, EVEN) * y
            r1 -= _get(ak + 1 * ars, m1, EVEN) * y
            r2 -= _get(ak + 2 * ars, m2, EVEN) * y
            r3 -= _get(ak + 3 * ars, m3, EVEN) * y
            r4 -= _get(ak + 4 * ars, m4, EVEN) * y
            r5 -= _get(ak + 5 * ars, m5, EVEN) * y
            r6 -= _get(ak + 6 * ars, m6, EVEN) * y
            r7 -= _get(ak + 7 * ars, m7, EVEN) * y
        ak = at + t0 * acs
        r0 = _over(r0, ak + 0 * ars, m0, UNIT, EVEN)
        r1 -= _get(ak + 1 * ars, m1, EVEN) * r0
        r2 -= _get(ak + 2 * ars, m2, EVEN) * r0
        r3 -= _get(ak + 3 * ars, m3, EVEN) * r0
        r4 -= _get(ak + 4 * ars, m4, EVEN) * r0
        r5 -= _get(ak + 5 * ars, m5, EVEN) * r0
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r0
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r0
        ak = ak + acs
        r1 = _over(r1, ak + 1 * ars, m1, UNIT, EVEN)
        r2 -= _get(ak + 2 * ars, m2, EVEN) * r1
        r3 -= _get(ak + 3 * ars, m3, EVEN) * r1
        r4 -= _get(ak + 4 * ars, m4, EVEN) * r1
        r5 -= _get(ak + 5 * ars, m5, EVEN) * r1
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r1
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r1
        ak = ak + acs
        r2 = _over(r2, ak + 2 * ars, m2, UNIT, EVEN)
        r3 -= _get(ak + 3 * ars, m3, EVEN) * r2
        r4 -= _get(ak + 4 * ars, m4, EVEN) * r2
        r5 -= _get(ak + 5 * ars, m5, EVEN) * r2
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r2
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r2
        ak = ak + acs
        r3 = _over(r3, ak + 3 * ars, m3, UNIT, EVEN)
        r4 -= _get(ak + 4 * ars, m4, EVEN) * r3
        r5 -= _get(ak + 5 * ars, m5, EVEN) * r3
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r3
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r3
        ak = ak + acs
        r4 = _over(r4, ak + 4 * ars, m4, UNIT, EVEN)
        r5 -= _get(ak + 5 * ars, m5, EVEN) * r4
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r4
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r4
        ak = ak + acs
        r5 = _over(r5, ak + 5 * ars, m5, UNIT, EVEN)
        r6 -= _get(ak + 6 * ars, m6, EVEN) * r5
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r5
        ak = ak + acs
        r6 = _over(r6, ak + 6 * ars, m6, UNIT, EVEN)
        r7 -= _get(ak + 7 * ars, m7, EVEN) * r6
        ak = ak + acs
        r7 = _over(r7, ak + 7 * ars, m7, UNIT, EVEN)
        tl.store(bt + 0 * brs, r0, mask=ok & m0)
        tl.store(bt + 1 * brs, r1, mask=ok & m1)
        tl.store(bt + 2 * brs, r2, mask=ok & m2)
        tl.store(bt + 3 * brs, r3, mask=ok & m3)
        tl.store(bt + 4 * brs, r4, mask=ok & m4)
        tl.store(bt + 5 * brs, r5, mask=ok & m5)
        tl.store(bt + 6 * brs, r6, mask=ok & m6)
        tl.store(bt + 7 * brs, r7, mask=ok & m7)
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "n", "ldb"])
def _zero(Barray, m, n, ldb, BM: tl.constexpr, BN: tl.constexpr):
    tm = tl.cdiv(m, BM)
    tn = tl.cdiv(n, BN)
    pid = tl.program_id(0)
    b = tl.load(Barray + pid // (tm * tn)).to(tl.pointer_type(tl.float64))
    t = pid % (tm * tn)
    rows = (t % tm).to(tl.int64) * BM + tl.arange(0, BM)
    cols = (t // tm).to(tl.int64) * BN + tl.arange(0, BN)
    mask = (cols < n)[:, None] & (rows < m)[None, :]
    tl.store(b + cols[:, None] * ldb + rows[None, :], tl.zeros((BN, BM), dtype=tl.float64), mask=mask)


def cublasDtrsmBatched(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        _zero[(triton.cdiv(m, 32) * triton.cdiv(n, 16) * batchCount,)](Barray, m, n, ldb, BM=32, BN=16, num_warps=4)
        return
    right = side == "R"
    order, rhs = (n, m) if right else (m, n)
    at = (trans != "N") != right  # M is stored transposed
    upper = (uplo == "U") != at
    total = batchCount * rhs
    if order > 64:
        # by the inverses of the diagonal blocks
        T = 16
        R = 32 if rhs > 16 else 16
        blocks = triton.cdiv(order, T)
        inv = torch.empty((batchCount * blocks * T * T,), dtype=torch.float64, device=Barray.device)
        _invert[(batchCount * blocks,)](Aarray, inv, order, blocks, lda, int(diag == "U"), AT=at, UPPER=upper, T=T,
                                        num_warps=1)
        _blocks[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, inv, order, rhs, _bits(alpha), lda, ldb, AT=at,
                                                     BT=right, UPPER=upper, T=T, R=R, num_warps=1, num_stages=3)
        return
    if total >= 8192:
        ars, acs = (lda, 1) if at else (1, lda)
        brs, bcs = (ldb, 1) if right else (1, ldb)
        aoff = boff = 0
        if upper:
            aoff, boff = (order - 1) * (lda + 1), (order - 1) * brs
            ars, acs, brs = -ars, -acs, -brs
        _lanes[(triton.cdiv(total, 32),)](Aarray, Barray, order, rhs, total, _bits(alpha), aoff, ars, acs, boff, brs, bcs,
                                          UNIT=diag == "U", EVEN=order % 8 == 0, LN=32, num_warps=1)
        return
    R = 32 if rhs > 16 else 16
    _solve[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, order, rhs, _bits(alpha), lda, ldb, int(diag == "U"),
                                                AT=at, BT=right, UPPER=upper, T=16, R=R, num_warps=1, num_stages=2)



