"""cublasZtrsmBatched: op(A) X = alpha B or X op(A) = alpha B for a batch behind arrays of pointers, in place.

Side 'R' is side 'L' of the transposed equation: M Z = alpha R, where M is op(A) or its transpose and Z is X or its
transpose. A block solves R right-hand sides of one M: it goes through the rows of Z in blocks of T, takes off what the
solved blocks give, and then multiplies by the inverse of the diagonal block, a product of powers. Only the triangle that is given is read. Real and
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
    cblocks = tl.cdiv(rhs, R)
    pid = tl.program_id(0)
    batch = (pid // cblocks).to(tl.int64)
    a = tl.multiple_of(tl.load(Aarray + batch).to(tl.pointer_type(tl.float64)), 16)
    b = tl.multiple_of(tl.load(Barray + batch).to(tl.pointer_type(tl.float64)), 16)
    rt = tl.arange(0, T)
    col = (pid % cblocks) * R + tl.arange(0, R).to(tl.int64)
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
        # the strict triangle of the diagonal block, and the diagonal
        if AT:
            pl = a + row[:, None] * la + row[None, :] * 2
        else:
            pl = a + row[:, None] * 2 + row[None, :] * la
        if UPPER:
            lmask = rt[None, :] > rt[:, None]
        else:
            lmask = rt[None, :] < rt[:, None]
        lmask = lmask & rmask[:, None] & rmask[None, :]
        lr = tl.load(pl, mask=lmask, other=0.0)
        li = tl.load(pl + 1, mask=lmask, other=0.0) * sign
        has = rmask & (unit == 0)
        pd = a + row * (la + 2)
        dr = tl.load(pd, mask=has, other=1.0)
        di = tl.load(pd + 1, mask=has, other=0.0) * sign
        # 1 / d with the larger part scaled to 1
        scale = tl.maximum(tl.abs(dr), tl.abs(di))
        dr = dr / scale
        di = di / scale
        den = (dr * dr + di * di) * scale
        vr = (dr / den)[:, None]
        vi = ((0.0 - di) / den)[:, None]
        # D (1 - N) is the diagonal block, N = -(1 / D) L
        nr = vi * li - vr * lr
        ni = 0.0 - (vr * li + vi * lr)
        # take off what the solved blocks give
        zr = br * ar - bi * ai
        zi = br * ai + bi * ar
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
            mr = 0.0 - tl.load(pm, mask=mmask, other=0.0)
            mi = tl.load(pm + 1, mask=mmask, other=0.0) * sign
            xr = tl.load(pz, mask=zmask, other=0.0)
            xi = tl.load(pz + 1, mask=zmask, other=0.0)
            mn = 0.0 - mi
            zr = tl.dot(mr, xr, zr, input_precision="ieee", out_dtype=tl.float64)
            zi = tl.dot(mr, xi, zi, input_precision="ieee", out_dtype=tl.float64)
            zr = tl.dot(mi, xi, zr, input_precision="ieee", out_dtype=tl.float64)
            zi = tl.dot(mn, xr, zi, input_precision="ieee", out_dtype=tl.float64)
        yr = vr * zr - vi * zi
        yi = vr * zi + vi * zr
        # (1 - N)^-1 = (1 + N^8) (1 + N^4) (1 + N^2) (1 + N), as N^16 = 0
        for q in tl.static_range(4):
            xr = yr
            xi = yi
            mn = 0.0 - ni
            yr = tl.dot(nr, xr, yr, input_precision="ieee", out_dtype=tl.float64)
            yi = tl.dot(nr, xi, yi, input_precision="ieee", out_dtype=tl.float64)
            yr = tl.dot(mn, xi, yr, input_precision="ieee", out_dtype=tl.float64)
            yi = tl.dot(ni, xr, yi, input_precision="ieee", out_dtype=tl.float64)
            if q < 3:
                sr = tl.zeros((T, T), dtype=tl.float64)
                si = tl.zeros((T, T), dtype=tl.float64)
                sr = tl.dot(nr, nr, sr, input_precision="ieee", out_dtype=tl.float64)
                si = tl.dot(nr, ni, si, input_precision="ieee", out_dtype=tl.float64)
                sr = tl.dot(mn, ni, sr, input_precision="ieee", out_dtype=tl.float64)
                si = tl.dot(ni, nr, si, input_precision="ieee", out_dtype=tl.float64)
                nr = sr
                ni = si
        tl.debug_barrier()
        tl.store(pb, yr, mask=bmask)
        tl.store(pb + 1, yi, mask=bmask)
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
    R = 16 if rhs <= 16 else 32
    _solve[(triton.cdiv(rhs, R) * batchCount,)](Aarray, Barray, order, rhs, _bits(alpha.real), _bits(alpha.imag), lda, ldb,
                                                int(diag == "U"), -1.0 if trans == "C" else 1.0,
                                                AT=at, BT=right, UPPER=upper, T=16, R=R, num_warps=1 if R == 16 else 2, num_stages=2)
