"""cublasZgemmStridedBatched: C = alpha op(A) op(B) + beta C for every matrix of a batch at fixed strides.

A complex column-major matrix of r rows is a real one of 2 r rows, real and imaginary part in turn. One real product of such
tiles, (2 BN, BK) times (BK, 2 BM), holds the four sums of products of parts of a whole (BN, BM) complex tile; they are put
together at the end, and conjugation is a sign there. An operand whose memory runs along k is read as (columns, 2 BK) and
re-ordered on chip. The tiles hold C transposed, so that their last axis runs along memory. FAST says that all tiles are full
and all strides multiples of 16 elements: then nothing is masked. Larger products (_gemm3) need three real products of parts.
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
def _tile(t, tm, tn):
    """Tile number t as (row of tiles, column of tiles), in bands of 8 columns, so that neighbours share L2."""
    width = 8 * tm
    first = (t // width) * 8
    size = tl.minimum(tn - first, 8)
    r = t % width
    return r // size, first + r % size


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "sa", "sb", "sc",
                             "ca", "cb", "alr", "ali", "ber", "bei", "use_c"])
def _gemm(A, B, C, m, n, k, lda, ldb, ldc, sa, sb, sc, ca, cb, alr, ali, ber, bei, use_c,
          TA: tl.constexpr, TB: tl.constexpr, FAST: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tm = (m - 1) // BM + 1
    tn = (n - 1) // BN + 1
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    q = (pid // (tm * tn)).to(tl.int64)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    if FAST:
        la = tl.multiple_of(la, 16)
        lb = tl.multiple_of(lb, 16)
        lc = tl.multiple_of(lc, 16)
    la = la * 2
    lb = lb * 2
    lc = lc * 2
    oa = sa.to(tl.int64)
    ob = sb.to(tl.int64)
    oc = sc.to(tl.int64)
    if FAST:
        oa = tl.multiple_of(oa, 16)
        ob = tl.multiple_of(ob, 16)
        oc = tl.multiple_of(oc, 16)
    a = A + q * oa * 2
    b = B + q * ob * 2
    c = C + q * oc * 2
    # y becomes op(A) transposed, (BK, 2 BM): column 2 i + part
    if TA:
        ry = i0 + tl.arange(0, BM)
        yp = a + ry[:, None] * la + (tl.arange(0, 2 * BK))[None, :]
        ystep = 2 * BK
    else:
        ry = i0 * 2 + tl.arange(0, 2 * BM)
        yp = a + (tl.arange(0, BK))[:, None] * la + ry[None, :]
        ystep = la * BK
    # x becomes op(B) transposed, (2 BN, BK): row 2 j + part
    if TB:
        rx = j0 * 2 + tl.arange(0, 2 * BN)
        xp = b + rx[:, None] + (tl.arange(0, BK))[None, :] * lb
        xstep = lb * BK
    else:
        rx = j0 + tl.arange(0, BN)
        xp = b + rx[:, None] * lb + (tl.arange(0, 2 * BK))[None, :]
        xstep = 2 * BK
    acc = tl.zeros((2 * BN, 2 * BM), dtype=tl.float64)
    for l in range(0, k, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < k - l
            left2 = tl.arange(0, 2 * BK) < (k - l) * 2
            if TA:
                y = tl.load(yp, mask=(ry < m)[:, None] & left2[None, :], other=0.0)
            else:
                y = tl.load(yp, mask=left[:, None] & (ry < m.to(tl.int64) * 2)[None, :], other=0.0)
            if TB:
                x = tl.load(xp, mask=(rx < n.to(tl.int64) * 2)[:, None] & left[None, :], other=0.0)
            else:
                x = tl.load(xp, mask=(rx < n)[:, None] & left2[None, :], other=0.0)
        if TA:
            y = tl.reshape(tl.permute(tl.reshape(y, (BM, BK, 2)), (1, 0, 2)), (BK, 2 * BM))
        if not TB:
            x = tl.reshape(tl.permute(tl.reshape(x, (BN, BK, 2)), (0, 2, 1)), (2 * BN, BK))
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    # (j, part of b, i, part of a) -> (j, i, part of b, part of a) -> four tiles
    parts = tl.permute(tl.reshape(acc, (BN, 2, BM, 2)), (0, 2, 1, 3))
    with_re, with_im = tl.split(parts)
    rr, ri = tl.split(with_re)
    ir, ii = tl.split(with_im)
    re = rr - ii * (ca * cb)
    im_ = ir * ca + ri * cb
    r2 = i0 * 2 + tl.arange(0, 2 * BM)
    rn = j0 + tl.arange(0, BN)
    mask = (rn < n)[:, None] & (r2 < m.to(tl.int64) * 2)[None, :]
    cp = c + rn[:, None] * lc + r2[None, :]
    if FAST:
        old = tl.load(cp, mask=use_c != 0, other=0.0)
        tl.store(cp, _combine(re, im_, old, alr, ali, ber, bei, BN, BM))
    else:
        old = tl.load(cp, mask=mask & (use_c != 0), other=0.0)
        tl.store(cp, _combine(re, im_, old, alr, ali, ber, bei, BN, BM), mask=mask)


@triton.jit
def _combine(re, im, old, alr, ali, ber, bei, BN: tl.constexpr, BM: tl.constexpr):
    """alpha (re, im) + beta old as a tile of interleaved parts; old is one already."""
    ar = _f64(alr)
    ai = _f64(ali)
    br = _f64(ber)
    bi = _f64(bei)
    cr, ci = tl.split(tl.reshape(old, (BN, BM, 2)))
    outr = (re * ar - im * ai) + (cr * br - ci * bi)
    outi = (re * ai + im * ar) + (cr * bi + ci * br)
    return tl.reshape(tl.join(outr, outi), (BN, 2 * BM))


@triton.jit
def _where(p, r0, ld, KT: tl.constexpr, R: tl.constexpr, BK: tl.constexpr):
    """Pointers of R rows from r0 on and BK terms of the sum. KT: memory runs along k, parts interleaved; else the real parts."""
    if KT:
        return p + ((r0 + tl.arange(0, R)) * ld)[:, None] + tl.arange(0, 2 * BK)[None, :]
    else:
        return p + (tl.arange(0, BK) * ld)[:, None] + ((r0 + tl.arange(0, R)) * 2)[None, :]


@triton.jit
def _part(p, mask, EVEN: tl.constexpr):
    if EVEN:
        return tl.load(p)
    else:
        return tl.load(p, mask=mask, other=0.0)


@triton.jit
def _parts(p, inside, left, KT: tl.constexpr, EVEN: tl.constexpr, R: tl.constexpr, BK: tl.constexpr):
    """Real and imaginary parts as (R, BK); 0 outside of the matrix."""
    if KT:
        v = _part(p, inside[:, None] & (tl.arange(0, 2 * BK) < left * 2)[None, :], EVEN)
        re, im = tl.split(tl.reshape(v, (R, BK, 2)))
        return re, im
    else:
        mask = (tl.arange(0, BK) < left)[:, None] & inside[None, :]
        return tl.trans(_part(p, mask, EVEN)), tl.trans(_part(p + 1, mask, EVEN))


@triton.jit
def _three(a, b, c, m, n, k, la, lb, lc, i0, j0, alr, ali, ber, bei,
           TA: tl.constexpr, TB: tl.constexpr, CA: tl.constexpr, CB: tl.constexpr, EVM: tl.constexpr, EVN: tl.constexpr,
           EVK: tl.constexpr, USE_C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of C by three real products; where their sums overflow, or infinities or NaN come in, anew by four."""
    ky: tl.constexpr = TA
    kx: tl.constexpr = not TB
    ey: tl.constexpr = EVM and EVK
    ex: tl.constexpr = EVN and EVK
    mx = j0 + tl.arange(0, BN) < n
    my = i0 + tl.arange(0, BM) < m
    yp = _where(a, i0, la, ky, BM, BK)
    xp = _where(b, j0, lb, kx, BN, BK)
    if ky:
        ystep = la * 0 + 2 * BK
    else:
        ystep = la * BK
    if kx:
        xstep = lb * 0 + 2 * BK
    else:
        xstep = lb * BK
    kk = k.to(tl.int32)
    s1 = tl.zeros((BN, BM), dtype=tl.float64)
    s2 = tl.zeros((BN, BM), dtype=tl.float64)
    s3 = tl.zeros((BN, BM), dtype=tl.float64)
    for l in tl.range(0, kk, BK):
        xr, xi = _parts(xp, mx, kk - l, kx, ex, BN, BK)
        yr, yi = _parts(yp, my, kk - l, ky, ey, BM, BK)
        yr = tl.trans(yr)
        yi = tl.trans(yi)
        s1 = tl.dot(xr, yr + yi, s1, input_precision="ieee", out_dtype=tl.float64)
        if CA == CB:
            s2 = tl.dot(xr - xi, yr, s2, input_precision="ieee", out_dtype=tl.float64)
            s3 = tl.dot(xr + xi, yi, s3, input_precision="ieee", out_dtype=tl.float64)
        else:
            s2 = tl.dot(xr + xi, yr, s2, input_precision="ieee", out_dtype=tl.float64)
            s3 = tl.dot(xr - xi, yi, s3, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    re = s1 - s3
    im = s1 - s2
    odd = (re - re) + (im - im)
    if tl.max(tl.max((odd != odd).to(tl.int32), axis=1), axis=0) > 0:
        steps = tl.cdiv(kk, BK).to(tl.int64)
        xp -= steps * xstep
        yp -= steps * ystep
        s1 = tl.zeros((BN, BM), dtype=tl.float64)
        s2 = tl.zeros((BN, BM), dtype=tl.float64)
        for l in tl.range(0, kk, BK, num_stages=1):
            xr, xi = _parts(xp, mx, kk - l, kx, ex, BN, BK)
            yr, yi = _parts(yp, my, kk - l, ky, ey, BM, BK)
            yr = tl.trans(yr)
            yi = tl.trans(yi)
            s1 = tl.dot(xr, yr, s1, input_precision="ieee", out_dtype=tl.float64)
            s2 = tl.dot(xr, yi, s2, input_precision="ieee", out_dtype=tl.float64)
            if CA == CB:
                s1 = tl.dot(0.0 - xi, yi, s1, input_precision="ieee", out_dtype=tl.float64)
                s2 = tl.dot(xi, yr, s2, input_precision="ieee", out_dtype=tl.float64)
            else:
                s1 = tl.dot(xi, yi, s1, input_precision="ieee", out_dtype=tl.float64)
                s2 = tl.dot(0.0 - xi, yr, s2, input_precision="ieee", out_dtype=tl.float64)
            xp += xstep
            yp += ystep
        re = s1
        im = s2
    if CA:
        im = 0.0 - im
    ar = _f64(alr)
    ai = _f64(ali)
    r2 = i0 * 2 + tl.arange(0, 2 * BM)
    rn = j0 + tl.arange(0, BN)
    cp = c + (rn * lc)[:, None] + r2[None, :]
    out = tl.reshape(tl.join(re * ar - im * ai, re * ai + im * ar), (BN, 2 * BM))
    mask = mx[:, None] & (r2 < m.to(tl.int64) * 2)[None, :]
    if USE_C:
        cr, ci = tl.split(tl.reshape(_part(cp, mask, EVM and EVN), (BN, BM, 2)))
        br = _f64(ber)
        bi = _f64(bei)
        out += tl.reshape(tl.join(cr * br - ci * bi, cr * bi + ci * br), (BN, 2 * BM))
    if EVM and EVN:
        tl.store(cp, out)
    else:
        tl.store(cp, out, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "k", "tm", "tn", "lda", "ldb", "ldc", "sa", "sb", "sc", "alr", "ali", "ber", "bei"])
def _gemm3(A, B, C, m, n, k, tm, tn, lda, ldb, ldc, sa, sb, sc, alr, ali, ber, bei,
           TA: tl.constexpr, TB: tl.constexpr, CA: tl.constexpr, CB: tl.constexpr, EVM: tl.constexpr, EVN: tl.constexpr,
           EVK: tl.constexpr, USE_C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    q = (pid // (tm * tn)).to(tl.int64)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    # real numbers; complex128 begins at multiples of 16 bytes
    la = lda.to(tl.int64) * 2
    lb = ldb.to(tl.int64) * 2
    lc = ldc.to(tl.int64) * 2
    a = A + q * (sa.to(tl.int64) * 2)
    b = B + q * (sb.to(tl.int64) * 2)
    c = C + q * (sc.to(tl.int64) * 2)
    _three(a, b, c, m, n, k, la, lb, lc, i0, j0, alr, ali, ber, bei, TA, TB, CA, CB, EVM, EVN, EVK, USE_C, BM, BN, BK)


def _tiles(m, n, batch):
    """Tile of C and number of warps: large tiles, but enough of them for the GPU."""
    bm = min(64, max(16, triton.next_power_of_2(m)))
    bn = min(32, max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 132 and max(bm, bn) > 16:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    area = 4 * bm * bn
    return bm, bn, 2 if area <= 1024 else 4 if area <= 4096 else 8


def cublasZgemmStridedBatched(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if max(m, n) >= 48 and min(m, n) >= 24 and 16 <= k <= 65536 and m * n * batchCount >= 64 * 32 * 128:
        bm, bn, bk = 64, 32, 16  # Triton 3.6 takes no product over fewer than 16 terms
        tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
        if tm * tn * batchCount < 2 ** 31:
            # four warps spill in the main loop if neither operand is transposed
            warps = 8 if transa == "N" and transb == "N" else 4
            _gemm3[(tm * tn * batchCount,)](torch.view_as_real(A), torch.view_as_real(B), torch.view_as_real(C), m, n, k, tm, tn,
                                            lda, ldb, ldc, strideA, strideB, strideC, _bits(alpha.real), _bits(alpha.imag),
                                            _bits(beta.real), _bits(beta.imag),
                                            TA=transa != "N", TB=transb != "N", CA=transa == "C", CB=transb == "C",
                                            EVM=m % bm == 0, EVN=n % bn == 0, EVK=k % bk == 0, USE_C=beta != 0,
                                            BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=4)
            return
    bm, bn, warps = _tiles(m, n, batchCount)
    bk = 16
    fast = (m % bm == 0 and n % bn == 0 and k % bk == 0 and all(v % 16 == 0 for v in (lda, ldb, ldc, strideA, strideB, strideC)))
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn) * batchCount,)
    _gemm[grid](torch.view_as_real(A), torch.view_as_real(B), torch.view_as_real(C), m, n, k, lda, ldb, ldc, strideA, strideB, strideC,
                -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0,
                _bits(alpha.real), _bits(alpha.imag), _bits(beta.real), _bits(beta.imag), int(beta != 0),
                TA=transa != "N", TB=transb != "N", FAST=fast, BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=3)

