"""cublasCgemmStridedBatched: C = alpha op(A) op(B) + beta C for every matrix of a batch at fixed strides.

A complex column-major matrix of r rows is a real one of 2 r rows, real and imaginary part in turn. One real product of such
tiles, (2 BN, BK) times (BK, 2 BM), holds the four sums of products of parts of a whole (BN, BM) complex tile; they are put
together at the end, and conjugation is a sign there. An operand whose memory runs along k is read as (columns, 2 BK) and
re-ordered on chip. The tiles hold C transposed, so that their last axis runs along memory. FAST says that all tiles are full
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


@triton.jit(do_not_specialize=["m", "n", "k", "kc", "tm", "tn", "lda", "ldb", "ldc", "sa", "sb",
                             "sc", "batch", "ca", "cb", "alr", "ali", "ber", "bei", "use_c"])
def _gemm(A, B, C, W, m, n, k, kc, tm, tn, lda, ldb, ldc, sa, sb, sc, batch, ca, cb, alr, ali, ber, bei, use_c,
          TA: tl.constexpr, TB: tl.constexpr, SPLIT: tl.constexpr, FAST: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # 2 m and 2 n may pass 2**31 - 1
    m = m.to(tl.int64)
    n = n.to(tl.int64)
    k = k.to(tl.int64)
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
        ry = i0 + tl.arange(0, BM)
        yp = a + ry[:, None] * la + (k0 * 2 + tl.arange(0, 2 * BK))[None, :]
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
        rx = j0 + tl.arange(0, BN)
        xp = b + rx[:, None] * lb + (k0 * 2 + tl.arange(0, 2 * BK))[None, :]
        xstep = 2 * BK
    acc = tl.zeros((2 * BN, 2 * BM), dtype=tl.float32)
    for l in range(0, kl, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < kl - l
            left2 = tl.arange(0, 2 * BK) < (kl - l) * 2
            if TA:
                y = tl.load(yp, mask=(ry < m)[:, None] & left2[None, :], other=0.0)
            else:
                y = tl.load(yp, mask=left[:, None] & (ry < m * 2)[None, :], other=0.0)
            if TB:
                x = tl.load(xp, mask=(rx < n * 2)[:, None] & left[None, :], other=0.0)
            else:
                x = tl.load(xp, mask=(rx < n)[:, None] & left2[None, :], other=0.0)
        if TA:
            y = tl.reshape(tl.permute(tl.reshape(y, (BM, BK, 2)), (1, 0, 2)), (BK, 2 * BM))
        if not TB:
            x = tl.reshape(tl.permute(tl.reshape(x, (BN, BK, 2)), (0, 2, 1)), (2 * BN, BK))
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
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
    mask = (rn < n)[:, None] & (r2 < m * 2)[None, :]
    if SPLIT:
        wp = W + ((s * batch + q) * n + rn)[:, None] * (m * 2) + r2[None, :]
        tl.store(wp, tl.reshape(tl.join(re, im_), (BN, 2 * BM)), mask=mask)
    else:
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
    nb = (mn + (BE - 1)) // BE
    q = tl.program_id(0).to(tl.int64) // nb
    t = tl.program_id(0).to(tl.int64) - q * nb
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
    cr = tl.load(cp, mask=keep & (use_c != 0), other=0.0)
    ci = tl.load(cp + 1, mask=keep & (use_c != 0), other=0.0)
    tl.store(cp, (re * alr - im * ali) + (cr * ber - ci * bei), mask=keep)
    tl.store(cp + 1, (re * ali + im * alr) + (cr * bei + ci * ber), mask=keep)


@triton.jit(do_not_specialize=["m", "n", "k", "count", "lda", "ldb", "ldc", "sa", "sb", "sc", "use_c"])
def _small(A, B, C, m, n, k, count, lda, ldb, ldc, sa, sb, sc, ca, cb, alr, ali, ber, bei, use_c,
           TA: tl.constexpr, TB: tl.constexpr, BE: tl.constexpr):
    """Very many tiny products: a thread per element of C."""
    e = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    keep = e < count
    t = e // m
    i = e - t * m
    q = t // n
    j = t - q * n
    if TA:
        ap = A + (q * sa + i * lda) * 2
        astep = 2
    else:
        ap = A + (q * sa + i) * 2
        astep = lda.to(tl.int64) * 2
    if TB:
        bp = B + (q * sb + j) * 2
        bstep = ldb.to(tl.int64) * 2
    else:
        bp = B + (q * sb + j * ldb) * 2
        bstep = 2
    re = tl.zeros((BE,), dtype=tl.float32)
    im = tl.zeros((BE,), dtype=tl.float32)
    for l in range(0, k):
        ar = tl.load(ap, mask=keep, other=0.0)
        ai = tl.load(ap + 1, mask=keep, other=0.0) * ca
        br = tl.load(bp, mask=keep, other=0.0)
        bi = tl.load(bp + 1, mask=keep, other=0.0) * cb
        re += ar * br - ai * bi
        im += ar * bi + ai * br
        ap += astep
        bp += bstep
    cp = C + (q * sc + i + j * ldc) * 2
    cr = tl.load(cp, mask=keep & (use_c != 0), other=0.0)
    ci = tl.load(cp + 1, mask=keep & (use_c != 0), other=0.0)
    tl.store(cp, (re * alr - im * ali) + (cr * ber - ci * bei), mask=keep)
    tl.store(cp + 1, (re * ali + im * alr) + (cr * bei + ci * ber), mask=keep)


@triton.jit
def _halves(v):
    """complex64 in 64 bits -> its parts in float64."""
    re = v.to(tl.int32).to(tl.float32, bitcast=True)
    im = (v >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return re.to(tl.float64), im.to(tl.float64)


@triton.jit
def _get(xp, yp, mx, my, left, EVX: tl.constexpr, EVY: tl.constexpr, EVK: tl.constexpr, BK: tl.constexpr):
    rk = tl.arange(0, BK)
    if EVK and EVX:
        x = tl.load(xp)
    elif EVK:
        x = tl.load(xp, mask=mx[:, None], other=0)
    else:
        x = tl.load(xp, mask=mx[:, None] & (rk < left)[None, :], other=0)
    if EVK and EVY:
        y = tl.load(yp)
    elif EVK:
        y = tl.load(yp, mask=my[None, :], other=0)
    else:
        y = tl.load(yp, mask=(rk < left)[:, None] & my[None, :], other=0)
    return x, y


@triton.jit(do_not_specialize=["m", "n", "k", "tm", "tn", "lda", "ldb", "ldc", "sa", "sb", "sc", "alr", "ali", "ber", "bei"])
def _gemm3(A, B, C, m, n, k, tm, tn, lda, ldb, ldc, sa, sb, sc, alr, ali, ber, bei,
           TA: tl.constexpr, TB: tl.constexpr, CA: tl.constexpr, CB: tl.constexpr, EVM: tl.constexpr, EVN: tl.constexpr,
           EVK: tl.constexpr, LD2: tl.constexpr, USE_C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A and B hold a complex number in 64 bits, C its parts. Three real products in float64, whose sums are far more exact
    # than float32 asks for; where infinities or NaN come in, the sum is formed anew by the four products.
    # LD2: leading dimensions and strides are even.
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    q = (pid // (tm * tn)).to(tl.int64)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    oa = sa.to(tl.int64)
    ob = sb.to(tl.int64)
    oc = sc.to(tl.int64)
    if LD2:
        la = tl.multiple_of(la, 2)
        lb = tl.multiple_of(lb, 2)
        lc = tl.multiple_of(lc, 2)
        oa = tl.multiple_of(oa, 2)
        ob = tl.multiple_of(ob, 2)
        oc = tl.multiple_of(oc, 2)
    a = A + q * oa
    b = B + q * ob
    rm = i0 + tl.arange(0, BM)
    rn = j0 + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    mx = rn < n
    my = rm < m
    # y: op(A) transposed, (BK, BM); x: op(B) transposed, (BN, BK)
    if TA:
        yp = a + rk[:, None] + rm[None, :] * la
        ystep = BK
    else:
        yp = a + rk[:, None] * la + rm[None, :]
        ystep = la * BK
    if TB:
        xp = b + rn[:, None] + rk[None, :] * lb
        xstep = lb * BK
    else:
        xp = b + rn[:, None] * lb + rk[None, :]
        xstep = BK
    kk = k.to(tl.int32)
    s1 = tl.zeros((BN, BM), dtype=tl.float64)
    s2 = tl.zeros((BN, BM), dtype=tl.float64)
    s3 = tl.zeros((BN, BM), dtype=tl.float64)
    for l in tl.range(0, kk, BK):
        x, y = _get(xp, yp, mx, my, kk - l, EVN, EVM, EVK, BK)
        xr, xi = _halves(x)
        yr, yi = _halves(y)
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
    im_ = s1 - s2
    odd = (re - re) + (im_ - im_)
    if tl.max(tl.max((odd != odd).to(tl.int32), axis=1), axis=0) > 0:
        s1 = tl.zeros((BN, BM), dtype=tl.float64)
        s2 = tl.zeros((BN, BM), dtype=tl.float64)
        steps = tl.cdiv(kk, BK).to(tl.int64)
        xp -= steps * xstep
        yp -= steps * ystep
        for l in tl.range(0, kk, BK, num_stages=1):
            x, y = _get(xp, yp, mx, my, kk - l, EVN, EVM, EVK, BK)
            xr, xi = _halves(x)
            yr, yi = _halves(y)
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
        im_ = s2
    if CA:
        im_ = 0.0 - im_
    r = re.to(tl.float32)
    i = im_.to(tl.float32)
    r2 = i0 * 2 + tl.arange(0, 2 * BM)
    cp = C + q * oc * 2 + (rn * lc * 2)[:, None] + r2[None, :]
    out = tl.reshape(tl.join(r * alr - i * ali, r * ali + i * alr), (BN, 2 * BM))
    if EVM and EVN:
        if USE_C:
            out += _times(tl.load(cp), ber, bei, BN, BM)
        tl.store(cp, out)
    else:
        mask = mx[:, None] & (r2 < m.to(tl.int64) * 2)[None, :]
        if USE_C:
            out += _times(tl.load(cp, mask=mask, other=0.0), ber, bei, BN, BM)
        tl.store(cp, out, mask=mask)


@triton.jit
def _times(v, r, i, BN: tl.constexpr, BM: tl.constexpr):
    """(r, i) times a tile of interleaved parts."""
    cr, ci = tl.split(tl.reshape(v, (BN, BM, 2)))
    return tl.reshape(tl.join(cr * r - ci * i, cr * i + ci * r), (BN, 2 * BM))


def _tiles(m, n, k, batch):
    """Tile of C, number of warps and number of pieces of k: large tiles, but enough blocks for the GPU."""
    bm = min(64, max(16, triton.next_power_of_2(m)))
    bn = min(64, max(16, triton.next_power_of_2(n)))
    tiles = triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch
    pieces = 1
    if tiles < 132 and k >= 2048:
        pieces = max(1, min(triton.cdiv(k, 512), (132 if bm * bn > 2048 else 396) // tiles))
    else:
        while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 132 and max(bm, bn) > 32:
            if bm >= bn:
                bm //= 2
            else:
                bn //= 2
    if k > 1 << 20:  # no program is to work for seconds
        pieces = max(pieces, triton.cdiv(k, 1 << 19))
    area = 4 * bm * bn
    return bm, bn, 1 if area <= 1024 else 2 if area <= 2048 else 4 if area <= 4096 else 8, pieces


def cublasCgemmStridedBatched(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if m >= 24 and n >= 24 and max(m, n) >= 48 and 16 <= k <= 65536 and m * n * batchCount >= 64 * 32 * 128:
        # without the turned operands' addresses the larger side along memory goes
        bm, bn, bk = (64, 32, 16) if transa == "N" and transb == "N" else (32, 64, 16)
        tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
        if tm * tn * batchCount < 2 ** 31:
            # registers for three programs a multiprocessor
            more = {"maxnreg": 168} if C.device.type == "cuda" else {}
            _gemm3[(tm * tn * batchCount,)](A.view(torch.int64), B.view(torch.int64), torch.view_as_real(C), m, n, k, tm, tn,
                                            lda, ldb, ldc, strideA, strideB, strideC, alpha.real, alpha.imag, beta.real, beta.imag,
                                            TA=transa != "N", TB=transb != "N", CA=transa == "C", CB=transb == "C",
                                            EVM=m % bm == 0, EVN=n % bn == 0, EVK=k % bk == 0,
                                            LD2=all(v % 2 == 0 for v in (lda, ldb, ldc, strideA, strideB, strideC)),
                                            USE_C=beta != 0, BM=bm, BN=bn, BK=bk, num_warps=4, num_stages=4, **more)
            return
    bm, bn, warps, pieces = _tiles(m, n, k, batchCount)
    bk = 16
    kc = k
    if pieces > 1:
        kc = triton.cdiv(triton.cdiv(k, pieces), bk) * bk
        pieces = triton.cdiv(k, kc)
    fast = (m % bm == 0 and n % bn == 0 and k % bk == 0 and all(v % 16 == 0 for v in (lda, ldb, ldc, strideA, strideB, strideC)))
    Ar, Br, Cr = torch.view_as_real(A), torch.view_as_real(B), torch.view_as_real(C)
    if batchCount >= 1 << 22 and m * n <= 32 and k <= 32:
        e = m * n * batchCount
        _small[(triton.cdiv(e, 512),)](Ar, Br, Cr, m, n, k, e, lda, ldb, ldc, strideA, strideB, strideC,
                                       -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0,
                                       alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0),
                                       TA=transa != "N", TB=transb != "N", BE=512, num_warps=4)
        return
    W = torch.empty(batchCount * pieces * m * n * 2, dtype=torch.float32, device=C.device) if pieces > 1 else Cr
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
    grid = (tm * tn * batchCount, pieces)
    _gemm[grid](Ar, Br, Cr, W, m, n, k, kc, tm, tn, lda, ldb, ldc, strideA, strideB, strideC, batchCount,
                -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0, *scalars,
                TA=transa != "N", TB=transb != "N", SPLIT=pieces > 1, FAST=fast, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=3)
    if pieces > 1:
        BS = min(64, triton.next_power_of_2(pieces))
        BE = max(16, 1024 // BS)
        _reduce[(triton.cdiv(m * n, BE) * batchCount,)](W, Cr, m, n, pieces, batchCount, strideC, ldc, *scalars, BS=BS, BE=BE, num_warps=4)


