"""cublasCgemm_v2: C = alpha op(A) op(B) + beta C.

A complex column-major matrix of r rows is a real one of 2 r rows, real and imaginary part in turn. One real product of such
tiles, (2 BN, BK) times (BK, 2 BM), holds the four sums of products of parts of a whole (BN, BM) complex tile; they are put
together at the end, and conjugation is a sign there. It is computed in float64: float32 as such has no tensor cores, and
their float64 is as fast as float32 elsewhere. An operand whose memory runs along k is read in Q pieces of (columns, 2 BK / Q),
lest columns meet in the banks of shared memory, and re-ordered on chip. The tiles hold C transposed, so that their last axis runs along memory. FAST says that all tiles are full
and all strides multiples of 16 elements: then nothing is masked. Where C has too few
tiles, k is cut into pieces whose sums go to scratch memory and are added up by a second kernel, always in the same order.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _tile(t, tm, tn):
    """Tile number t as (row of tiles, column of tiles), in bands of 8 columns, so that neighbours share L2."""
    width = 8 * tm
    first = (t // width) * 8
    size = tl.minimum(tn - first, 8)
    r = t % width
    return r // size, first + r % size


@triton.jit(do_not_specialize=["m", "n", "k", "kc", "lda", "ldb", "ldc", "sa", "sb",
                             "sc", "batch", "ca", "cb", "alr", "ali", "ber", "bei", "use_c"])
def _gemm(A, B, C, W, m, n, k, kc, lda, ldb, ldc, sa, sb, sc, batch, ca, cb, alr, ali, ber, bei, use_c,
          TA: tl.constexpr, TB: tl.constexpr, SPLIT: tl.constexpr, FAST: tl.constexpr, Q: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tm = (m - 1) // BM + 1
    tn = (n - 1) // BN + 1
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    q = (pid // (tm * tn)).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    k0 = s * kc  # kc is a multiple of BK
    if FAST:
        k0 = tl.multiple_of(k0, 16)
    kl = tl.minimum(k - k0, kc)
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
        qy = tl.arange(0, Q * BM)
        ry = i0 + qy % BM
        ky = qy // BM * (2 * BK // Q)
        yp = a + (ry * la + k0 * 2 + ky)[:, None] + tl.arange(0, 2 * BK // Q)[None, :]
        ystep = 2 * BK
    else:
        ry = i0 * 2 + tl.arange(0, 2 * BM)
        yp = a + (k0 + tl.arange(0, BK))[:, None] * la + ry[None, :]
        ystep = la * BK
    # x becomes op(B) transposed, (2 BN, BK): row 2 j + part
    if TB:
        rx = j0 * 2 + tl.arange(0, 2 * BN)
        xp = b + rx[:, None] + (k0 + tl.arange(0, BK))[None, :] * lb
        xstep = lb * BK
    else:
        qx = tl.arange(0, Q * BN)
        rx = j0 + qx % BN
        kx = qx // BN * (2 * BK // Q)
        xp = b + (rx * lb + k0 * 2 + kx)[:, None] + tl.arange(0, 2 * BK // Q)[None, :]
        xstep = 2 * BK
    acc = tl.zeros((2 * BN, 2 * BM), dtype=tl.float64)
    for l in range(0, kl, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < kl - l
            left2 = tl.arange(0, 2 * BK // Q)
            kleft = (kl - l) * 2
            if TA:
                y = tl.load(yp, mask=(ry < m)[:, None] & (ky[:, None] + left2[None, :] < kleft), other=0.0)
            else:
                y = tl.load(yp, mask=left[:, None] & (ry < m.to(tl.int64) * 2)[None, :], other=0.0)
            if TB:
                x = tl.load(xp, mask=(rx < n.to(tl.int64) * 2)[:, None] & left[None, :], other=0.0)
            else:
                x = tl.load(xp, mask=(rx < n)[:, None] & (kx[:, None] + left2[None, :] < kleft), other=0.0)
        if TA:
            y = tl.reshape(tl.permute(tl.reshape(y, (Q, BM, BK // Q, 2)), (0, 2, 1, 3)), (BK, 2 * BM))
        if not TB:
            x = tl.reshape(tl.permute(tl.reshape(x, (Q, BN, BK // Q, 2)), (1, 3, 0, 2)), (2 * BN, BK))
        acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    # (j, part of b, i, part of a) -> (j, i, part of b, part of a) -> four tiles
    parts = tl.permute(tl.reshape(acc.to(tl.float32), (BN, 2, BM, 2)), (0, 2, 1, 3))
    with_re, with_im = tl.split(parts)
    rr, ri = tl.split(with_re)
    ir, ii = tl.split(with_im)
    re = rr - ii * (ca * cb)
    im_ = ir * ca + ri * cb
    r2 = i0 * 2 + tl.arange(0, 2 * BM)
    rn = j0 + tl.arange(0, BN)
    mask = (rn < n)[:, None] & (r2 < m.to(tl.int64) * 2)[None, :]
    if SPLIT:
        wp = W + ((s * batch + q) * n + rn)[:, None] * (m.to(tl.int64) * 2) + r2[None, :]
        tl.store(wp, tl.reshape(tl.join(re, im_), (BN, 2 * BM)), mask=mask)
    else:
        cp = c + rn[:, None] * lc + r2[None, :]
        if FAST:
            old = tl.load(cp, mask=(tl.zeros((BN, 2 * BM), dtype=tl.int32) + use_c) != 0, other=0.0)
            tl.store(cp, _combine(re, im_, old, alr, ali, ber, bei, BN, BM))
        else:
            old = tl.load(cp, mask=mask & ((tl.zeros((BN, 2 * BM), dtype=tl.int32) + use_c) != 0), other=0.0)
            tl.store(cp, _combine(re, im_, old, alr, ali, ber, bei, BN, BM), mask=mask)


@triton.jit
def _combine(re, im, old, alr, ali, ber, bei, BN: tl.constexpr, BM: tl.constexpr):
    """alpha (re, im) + beta old as a tile of interleaved parts; old is one already."""
    ar = alr
    ai = ali
    br = ber
    bi = bei
    cr, ci = tl.split(tl.reshape(old, (BN, BM, 2)))
    outr = (re * ar - im * ai) + (cr * br - ci * bi)
    outi = (re * ai + im * ar) + (cr * bi + ci * br)
    return tl.reshape(tl.join(outr, outi), (BN, 2 * BM))


@triton.jit(do_not_specialize=["m", "n", "count", "batch", "sc", "ldc", "alr", "ali", "ber", "bei", "use_c"])
def _reduce(W, C, m, n, count, batch, sc, ldc, alr, ali, ber, bei, use_c, BS: tl.constexpr, BE: tl.constexpr):
    mn = m.to(tl.int64) * n
    nb = tl.cdiv(mn, BE)
    q = tl.program_id(0) // nb
    t = tl.program_id(0) % nb
    e = t.to(tl.int64) * BE + tl.arange(0, BE)
    e2 = t.to(tl.int64) * (2 * BE) + tl.arange(0, 2 * BE)
    i = e % m
    j = e // m
    acc = tl.zeros((BS, 2 * BE), dtype=tl.float32)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        wp = W + ((ss * batch + q) * mn * 2)[:, None] + e2[None, :]
        acc += tl.load(wp, mask=(ss < count)[:, None] & (e2 < mn * 2)[None, :], other=0.0)
    re, im = tl.split(tl.reshape(tl.sum(acc, axis=0), (BE, 2)))
    keep = e < mn
    cp = C + (q * sc + i + j * ldc) * 2
    cr = tl.load(cp, mask=keep & ((tl.zeros((BE,), dtype=tl.int32) + use_c) != 0), other=0.0)
    ci = tl.load(cp + 1, mask=keep & ((tl.zeros((BE,), dtype=tl.int32) + use_c) != 0), other=0.0)
    tl.store(cp, (re * alr - im * ali) + (cr * ber - ci * bei), mask=keep)
    tl.store(cp + 1, (re * ali + im * alr) + (cr * bei + ci * ber), mask=keep)


def _tiles(m, n, k, batch):
    """Tile of C, number of warps and number of pieces of k: large tiles, but enough blocks for the GPU."""
    bm = min(64, max(16, triton.next_power_of_2(m)))
    bn = min(32, max(16, triton.next_power_of_2(n)))
    tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch
    pieces = 1
    if tiles <= 132 and k >= 2048:
        pieces = max(1, min(triton.cdiv(k, 512), (264 if bm * bn > 1024 else 528) // tiles))
    else:
        while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 132 and max(bm, bn) > 16:
            if bm >= bn:
                bm //= 2
            else:
                bn //= 2
    area = 4 * bm * bn
    return bm, bn, 1 if area <= 1024 else 2 if area <= 2048 else 4 if area <= 4096 else 8, pieces


def cublasCgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m <= 0 or n <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B is read then
    bm, bn, warps, pieces = _tiles(m, n, k, 1)
    # long sums of small matrices read longer runs of memory at a time
    bk = 32 if pieces > 1 else 16
    kc = k
    if pieces > 1:
        kc = triton.cdiv(triton.cdiv(k, pieces), bk) * bk
        pieces = triton.cdiv(k, kc)
    ta, tb = transa != "N", transb != "N"
    Ar, Br, Cr = torch.view_as_real(A), torch.view_as_real(B), torch.view_as_real(C)
    fast = (m % bm == 0 and n % bn == 0 and k % bk == 0 and all(v % 16 == 0 for v in (lda, ldb, ldc)))
    W = torch.empty(pieces * m * n * 2, dtype=torch.float32, device=C.device) if pieces > 1 else Cr
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn), pieces)
    _gemm[grid](Ar, Br, Cr, W, m, n, k, kc, lda, ldb, ldc, 0, 0, 0, 1,
                -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0, *scalars,
                TA=ta, TB=tb, SPLIT=pieces > 1, FAST=fast, Q=bk // 8, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=3, maxnreg=128 if fast and warps == 8 else None)
    if pieces > 1:
        BS = min(64, triton.next_power_of_2(pieces))
        BE = max(16, 1024 // BS)
        _reduce[(triton.cdiv(m * n, BE),)](W, Cr, m, n, pieces, 1, 0, ldc, *scalars, BS=BS, BE=BE, num_warps=4)
