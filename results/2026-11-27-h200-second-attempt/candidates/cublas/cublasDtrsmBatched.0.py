"""cublasDtrsmBatched: op(A) X = alpha B or X op(A) = alpha B for a batch behind arrays of pointers, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. A block solves R right-hand sides of one M: it goes through the rows of Z in blocks of T, takes off what the
solved blocks give, and then eliminates inside the block, row after row. Only the triangle that is given is read.
Orders up to 32 are solved in registers instead, a lane for each right-hand side.
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


@triton.jit
def _row(p, sk, ok, K: tl.constexpr, z0, z1, z2, z3, z4, z5, z6, z7,
         z8, z9, z10, z11, z12, z13, z14, z15):
    """The first K elements of a row of M, from p on, times the solved z."""
    s = tl.load(p, mask=ok, other=0.0) * z0
    if K > 1:
        s += tl.load(p + sk * 1, mask=ok, other=0.0) * z1
    if K > 2:
        s += tl.load(p + sk * 2, mask=ok, other=0.0) * z2
    if K > 3:
        s += tl.load(p + sk * 3, mask=ok, other=0.0) * z3
    if K > 4:
        s += tl.load(p + sk * 4, mask=ok, other=0.0) * z4
    if K > 5:
        s += tl.load(p + sk * 5, mask=ok, other=0.0) * z5
    if K > 6:
        s += tl.load(p + sk * 6, mask=ok, other=0.0) * z6
    if K > 7:
        s += tl.load(p + sk * 7, mask=ok, other=0.0) * z7
    if K > 8:
        s += tl.load(p + sk * 8, mask=ok, other=0.0) * z8
    if K > 9:
        s += tl.load(p + sk * 9, mask=ok, other=0.0) * z9
    if K > 10:
        s += tl.load(p + sk * 10, mask=ok, other=0.0) * z10
    if K > 11:
        s += tl.load(p + sk * 11, mask=ok, other=0.0) * z11
    if K > 12:
        s += tl.load(p + sk * 12, mask=ok, other=0.0) * z12
    if K > 13:
        s += tl.load(p + sk * 13, mask=ok, other=0.0) * z13
    if K > 14:
        s += tl.load(p + sk * 14, mask=ok, other=0.0) * z14
    if K > 15:
        s += tl.load(p + sk * 15, mask=ok, other=0.0) * z15
    return s


@triton.jit
def _diag(z, p, ok, UNIT: tl.constexpr):
    if not UNIT:
        z = z / tl.load(p, mask=ok, other=1.0)
    return z


@triton.jit
def _tri(p, sp, sk, ok, left, UNIT: tl.constexpr, z0, z1, z2, z3, z4, z5, z6, z7,
         z8, z9, z10, z11, z12, z13, z14, z15):
    """Sixteen unknowns of a lower triangle whose first element is at p; `left` rows of it exist."""
    z0 = _diag(z0, p, ok & (left > 0), UNIT)
    z1 = _diag(z1 - _row(p + sp * 1, sk, ok & (left > 1), 1, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 1, ok & (left > 1), UNIT)
    z2 = _diag(z2 - _row(p + sp * 2, sk, ok & (left > 2), 2, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 2, ok & (left > 2), UNIT)
    z3 = _diag(z3 - _row(p + sp * 3, sk, ok & (left > 3), 3, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 3, ok & (left > 3), UNIT)
    z4 = _diag(z4 - _row(p + sp * 4, sk, ok & (left > 4), 4, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 4, ok & (left > 4), UNIT)
    z5 = _diag(z5 - _row(p + sp * 5, sk, ok & (left > 5), 5, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 5, ok & (left > 5), UNIT)
    z6 = _diag(z6 - _row(p + sp * 6, sk, ok & (left > 6), 6, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 6, ok & (left > 6), UNIT)
    z7 = _diag(z7 - _row(p + sp * 7, sk, ok & (left > 7), 7, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 7, ok & (left > 7), UNIT)
    z8 = _diag(z8 - _row(p + sp * 8, sk, ok & (left > 8), 8, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 8, ok & (left > 8), UNIT)
    z9 = _diag(z9 - _row(p + sp * 9, sk, ok & (left > 9), 9, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 9, ok & (left > 9), UNIT)
    z10 = _diag(z10 - _row(p + sp * 10, sk, ok & (left > 10), 10, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 10, ok & (left > 10), UNIT)
    z11 = _diag(z11 - _row(p + sp * 11, sk, ok & (left > 11), 11, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 11, ok & (left > 11), UNIT)
    z12 = _diag(z12 - _row(p + sp * 12, sk, ok & (left > 12), 12, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 12, ok & (left > 12), UNIT)
    z13 = _diag(z13 - _row(p + sp * 13, sk, ok & (left > 13), 13, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 13, ok & (left > 13), UNIT)
    z14 = _diag(z14 - _row(p + sp * 14, sk, ok & (left > 14), 14, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 14, ok & (left > 14), UNIT)
    z15 = _diag(z15 - _row(p + sp * 15, sk, ok & (left > 15), 15, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15),
              p + (sp + sk) * 15, ok & (left > 15), UNIT)
    return (z0, z1, z2, z3, z4, z5, z6, z7,
            z8, z9, z10, z11, z12, z13, z14, z15)


@triton.jit
def _take(p, sp, sk, ok, left, y0, y1, y2, y3, y4, y5, y6, y7,
          y8, y9, y10, y11, y12, y13, y14, y15,
          z0, z1, z2, z3, z4, z5, z6, z7,
          z8, z9, z10, z11, z12, z13, z14, z15):
    """Takes sixteen solved unknowns z off the sixteen rows y below them."""
    y0 -= _row(p + sp * 0, sk, ok & (left > 0), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y1 -= _row(p + sp * 1, sk, ok & (left > 1), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y2 -= _row(p + sp * 2, sk, ok & (left > 2), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y3 -= _row(p + sp * 3, sk, ok & (left > 3), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y4 -= _row(p + sp * 4, sk, ok & (left > 4), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y5 -= _row(p + sp * 5, sk, ok & (left > 5), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y6 -= _row(p + sp * 6, sk, ok & (left > 6), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y7 -= _row(p + sp * 7, sk, ok & (left > 7), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y8 -= _row(p + sp * 8, sk, ok & (left > 8), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y9 -= _row(p + sp * 9, sk, ok & (left > 9), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y10 -= _row(p + sp * 10, sk, ok & (left > 10), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y11 -= _row(p + sp * 11, sk, ok & (left > 11), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y12 -= _row(p + sp * 12, sk, ok & (left > 12), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y13 -= _row(p + sp * 13, sk, ok & (left > 13), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y14 -= _row(p + sp * 14, sk, ok & (left > 14), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    y15 -= _row(p + sp * 15, sk, ok & (left > 15), 16, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    return (y0, y1, y2, y3, y4, y5, y6, y7,
            y8, y9, y10, y11, y12, y13, y14, y15)


@triton.jit
def _split16(t, R: tl.constexpr):
    """(R, 16) -> its sixteen columns; the digits of a name are the bits of the column's number."""
    t = tl.reshape(t, (R, 2, 2, 2, 2))
    c0, c1 = tl.split(t)
    c00, c10 = tl.split(c0)
    c01, c11 = tl.split(c1)
    c000, c100 = tl.split(c00)
    c010, c110 = tl.split(c10)
    c001, c101 = tl.split(c01)
    c011, c111 = tl.split(c11)
    c0000, c1000 = tl.split(c000)
    c0100, c1100 = tl.split(c100)
    c0010, c1010 = tl.split(c010)
    c0110, c1110 = tl.split(c110)
    c0001, c1001 = tl.split(c001)
    c0101, c1101 = tl.split(c101)
    c0011, c1011 = tl.split(c011)
    c0111, c1111 = tl.split(c111)
    return (c0000, c0001, c0010, c0011, c0100, c0101, c0110, c0111,
            c1000, c1001, c1010, c1011, c1100, c1101, c1110, c1111)


@triton.jit
def _join16(z0, z1, z2, z3, z4, z5, z6, z7,
            z8, z9, z10, z11, z12, z13, z14, z15, R: tl.constexpr):
    """The reverse of _split16."""
    j000 = tl.join(z0, z8)
    j001 = tl.join(z1, z9)
    j010 = tl.join(z2, z10)
    j011 = tl.join(z3, z11)
    j100 = tl.join(z4, z12)
    j101 = tl.join(z5, z13)
    j110 = tl.join(z6, z14)
    j111 = tl.join(z7, z15)
    j00 = tl.join(j000, j100)
    j01 = tl.join(j001, j101)
    j10 = tl.join(j010, j110)
    j11 = tl.join(j011, j111)
    j0 = tl.join(j00, j10)
    j1 = tl.join(j01, j11)
    t = tl.join(j0, j1)
    return tl.reshape(t, (R, 16))


@triton.jit(do_not_specialize=["order", "rhs", "alpha", "lda", "ldb", "total"])
def _lanes(Aarray, Barray, order, rhs, alpha, lda, ldb, total, AT: tl.constexpr, BT: tl.constexpr,
           UPPER: tl.constexpr, UNIT: tl.constexpr, TWO: tl.constexpr, BIG: tl.constexpr, R: tl.constexpr):
    """Orders up to 16, or 32 (TWO): a lane solves a right-hand side, all unknowns in registers. An upper triangle is
    gone through backwards: unknown i is row order - 1 - i then."""
    al = _f64(alpha)
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    e = pid * R + tl.arange(0, R)
    ok = e < total
    q = e // rhs
    col = (e - q * rhs).to(tl.int64)
    a = tl.load(Aarray + q, mask=ok, other=0).to(tl.pointer_type(tl.float64))
    b = tl.load(Barray + q, mask=ok, other=0).to(tl.pointer_type(tl.float64))
    if AT:
        sp = la
        sk = la * 0 + 1
    else:
        sp = la * 0 + 1
        sk = la
    if BT:
        sb = lb
        pz = b + col
    else:
        sb = lb * 0 + 1
        pz = b + col * lb
    if UPPER:
        a += (la + 1) * (order - 1)
        pz += sb * (order - 1)
        sp = -sp
        sk = -sk
        sb = -sb
    if BT:
        # neighbouring lanes read neighbouring addresses
        z0 = tl.load(pz + sb * 0, mask=ok & (order > 0), other=0.0) * al
        z1 = tl.load(pz + sb * 1, mask=ok & (order > 1), other=0.0) * al
        z2 = tl.load(pz + sb * 2, mask=ok & (order > 2), other=0.0) * al
        z3 = tl.load(pz + sb * 3, mask=ok & (order > 3), other=0.0) * al
        z4 = tl.load(pz + sb * 4, mask=ok & (order > 4), other=0.0) * al
        z5 = tl.load(pz + sb * 5, mask=ok & (order > 5), other=0.0) * al
        z6 = tl.load(pz + sb * 6, mask=ok & (order > 6), other=0.0) * al
        z7 = tl.load(pz + sb * 7, mask=ok & (order > 7), other=0.0) * al
        z8 = tl.load(pz + sb * 8, mask=ok & (order > 8), other=0.0) * al
        z9 = tl.load(pz + sb * 9, mask=ok & (order > 9), other=0.0) * al
        z10 = tl.load(pz + sb * 10, mask=ok & (order > 10), other=0.0) * al
        z11 = tl.load(pz + sb * 11, mask=ok & (order > 11), other=0.0) * al
        z12 = tl.load(pz + sb * 12, mask=ok & (order > 12), other=0.0) * al
        z13 = tl.load(pz + sb * 13, mask=ok & (order > 13), other=0.0) * al
        z14 = tl.load(pz + sb * 14, mask=ok & (order > 14), other=0.0) * al
        z15 = tl.load(pz + sb * 15, mask=ok & (order > 15), other=0.0) * al
        if TWO:
            y0 = tl.load(pz + sb * 16, mask=ok & (order > 16), other=0.0) * al
            y1 = tl.load(pz + sb * 17, mask=ok & (order > 17), other=0.0) * al
            y2 = tl.load(pz + sb * 18, mask=ok & (order > 18), other=0.0) * al
            y3 = tl.load(pz + sb * 19, mask=ok & (order > 19), other=0.0) * al
            y4 = tl.load(pz + sb * 20, mask=ok & (order > 20), other=0.0) * al
            y5 = tl.load(pz + sb * 21, mask=ok & (order > 21), other=0.0) * al
            y6 = tl.load(pz + sb * 22, mask=ok & (order > 22), other=0.0) * al
            y7 = tl.load(pz + sb * 23, mask=ok & (order > 23), other=0.0) * al
            y8 = tl.load(pz + sb * 24, mask=ok & (order > 24), other=0.0) * al
            y9 = tl.load(pz + sb * 25, mask=ok & (order > 25), other=0.0) * al
            y10 = tl.load(pz + sb * 26, mask=ok & (order > 26), other=0.0) * al
            y11 = tl.load(pz + sb * 27, mask=ok & (order > 27), other=0.0) * al
            y12 = tl.load(pz + sb * 28, mask=ok & (order > 28), other=0.0) * al
            y13 = tl.load(pz + sb * 29, mask=ok & (order > 29), other=0.0) * al
            y14 = tl.load(pz + sb * 30, mask=ok & (order > 30), other=0.0) * al
            y15 = tl.load(pz + sb * 31, mask=ok & (order > 31), other=0.0) * al
    else:
        i = tl.arange(0, 16)
        pt = pz[:, None] + (i * sb)[None, :]
        okt = ok[:, None] & (i < order)[None, :]
        (z0, z1, z2, z3, z4, z5, z6, z7,
         z8, z9, z10, z11, z12, z13, z14, z15) = _split16(tl.load(pt, mask=okt, other=0.0) * al, R)
        if TWO:
            pu = pt + sb * 16
            oku = ok[:, None] & (i + 16 < order)[None, :]
            (y0, y1, y2, y3, y4, y5, y6, y7,
             y8, y9, y10, y11, y12, y13, y14, y15) = _split16(tl.load(pu, mask=oku, other=0.0) * al, R)
    (z0, z1, z2, z3, z4, z5, z6, z7,
     z8, z9, z10, z11, z12, z13, z14, z15) = _tri(a, sp, sk, ok, order, UNIT, z0, z1, z2, z3, z4, z5, z6, z7,
        z8, z9, z10, z11, z12, z13, z14, z15)
    if TWO:
        (y0, y1, y2, y3, y4, y5, y6, y7,
         y8, y9, y10, y11, y12, y13, y14, y15) = _take(a + sp * 16, sp, sk, ok, order - 16,
            y0, y1, y2, y3, y4, y5, y6, y7,
            y8, y9, y10, y11, y12, y13, y14, y15,
            z0, z1, z2, z3, z4, z5, z6, z7,
            z8, z9, z10, z11, z12, z13, z14, z15)
        (y0, y1, y2, y3, y4, y5, y6, y7,
         y8, y9, y10, y11, y12, y13, y14, y15) = _tri(a + (sp + sk) * 16, sp, sk, ok, order - 16, UNIT,
            y0, y1, y2, y3, y4, y5, y6, y7,
            y8, y9, y10, y11, y12, y13, y14, y15)
    if BT:
        tl.store(pz + sb * 0, z0, mask=ok & (order > 0))
        tl.store(pz + sb * 1, z1, mask=ok & (order > 1))
        tl.store(pz + sb * 2, z2, mask=ok & (order > 2))
        tl.store(pz + sb * 3, z3, mask=ok & (order > 3))
        tl.store(pz + sb * 4, z4, mask=ok & (order > 4))
        tl.store(pz + sb * 5, z5, mask=ok & (order > 5))
        tl.store(pz + sb * 6, z6, mask=ok & (order > 6))
        tl.store(pz + sb * 7, z7, mask=ok & (order > 7))
        tl.store(pz + sb * 8, z8, mask=ok & (order > 8))
        tl.store(pz + sb * 9, z9, mask=ok & (order > 9))
        tl.store(pz + sb * 10, z10, mask=ok & (order > 10))
        tl.store(pz + sb * 11, z11, mask=ok & (order > 11))
        tl.store(pz + sb * 12, z12, mask=ok & (order > 12))
        tl.store(pz + sb * 13, z13, mask=ok & (order > 13))
        tl.store(pz + sb * 14, z14, mask=ok & (order > 14))
        tl.store(pz + sb * 15, z15, mask=ok & (order > 15))
        if TWO:
            tl.store(pz + sb * 16, y0, mask=ok & (order > 16))
            tl.store(pz + sb * 17, y1, mask=ok & (order > 17))
            tl.store(pz + sb * 18, y2, mask=ok & (order > 18))
            tl.store(pz + sb * 19, y3, mask=ok & (order > 19))
            tl.store(pz + sb * 20, y4, mask=ok & (order > 20))
            tl.store(pz + sb * 21, y5, mask=ok & (order > 21))
            tl.store(pz + sb * 22, y6, mask=ok & (order > 22))
            tl.store(pz + sb * 23, y7, mask=ok & (order > 23))
            tl.store(pz + sb * 24, y8, mask=ok & (order > 24))
            tl.store(pz + sb * 25, y9, mask=ok & (order > 25))
            tl.store(pz + sb * 26, y10, mask=ok & (order > 26))
            tl.store(pz + sb * 27, y11, mask=ok & (order > 27))
            tl.store(pz + sb * 28, y12, mask=ok & (order > 28))
            tl.store(pz + sb * 29, y13, mask=ok & (order > 29))
            tl.store(pz + sb * 30, y14, mask=ok & (order > 30))
            tl.store(pz + sb * 31, y15, mask=ok & (order > 31))
    else:
        tl.store(pt, _join16(z0, z1, z2, z3, z4, z5, z6, z7,
            z8, z9, z10, z11, z12, z13, z14, z15, R), mask=okt)
        if TWO:
            tl.store(pu, _join16(y0, y1, y2, y3, y4, y5, y6, y7,
                y8, y9, y10, y11, y12, y13, y14, y15, R), mask=oku)


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
    if order <= 32:
        total = rhs * batchCount
        _lanes[(triton.cdiv(total, 128),)](Aarray, Barray, order, rhs, _bits(alpha), lda, ldb, total,
                                           AT=at, BT=right, UPPER=upper, UNIT=diag == "U", TWO=order > 16,
                                           BIG=total >= 2 ** 31 - 2 ** 16, R=128, num_warps=4)
        return
    R = 32 if rhs > 16 else 16
    _solve[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, order, rhs, _bits(alpha), lda, ldb, int(diag == "U"),
                                                AT=at, BT=right, UPPER=upper, T=16, R=R, num_warps=1, num_stages=2)

