"""cublasSgemmBatched_64: C = alpha op(A) op(B) + beta C for every matrix of a batch behind arrays of pointers.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 16 elements: then nothing is masked. Larger products (_gemm64) are formed by
the tensor cores in float64, whose speed is that of float32 elsewhere, and rounded once.
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


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "use_c", "tm", "tn", "steps", "batch"])
def _gemm(A, B, C, W, m, n, k, lda, ldb, ldc, alpha, beta, use_c, tm, tn, steps, batch,
          TA: tl.constexpr, TB: tl.constexpr, FAST: tl.constexpr, SPLIT: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # tm, tn: tiles in each direction, steps: steps of BK of one piece of the sum
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
    a = tl.load(A + q).to(tl.pointer_type(tl.float32))
    b = tl.load(B + q).to(tl.pointer_type(tl.float32))
    c = tl.load(C + q).to(tl.pointer_type(tl.float32))
    rm = i0 + tl.arange(0, BM)
    rn = j0 + tl.arange(0, BN)
    rk = tl.arange(0, BK)
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
    left = k.to(tl.int64)
    if SPLIT:
        l0 = tl.program_id(1).to(tl.int64) * steps * BK
        left = tl.minimum(left - l0, steps.to(tl.int64) * BK)
        if TA:
            yp += l0
        else:
            yp += l0 * la
        if TB:
            xp += l0 * lb
        else:
            xp += l0
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for _ in range(0, steps):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            kmask = rk < left
            x = tl.load(xp, mask=(rn < n)[:, None] & kmask[None, :], other=0.0)
            y = tl.load(yp, mask=kmask[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
        xp += xstep
        yp += ystep
        left -= BK
    if SPLIT:
        wp = W + (tl.program_id(1).to(tl.int64) * batch + q) * (n.to(tl.int64) * m) + rn[:, None] * m + rm[None, :]
        tl.store(wp, acc, mask=(rn < n)[:, None] & (rm < m)[None, :])
    else:
        cp = c + rn[:, None] * lc + rm[None, :]
        if FAST:
            old = tl.load(cp, mask=use_c != 0, other=0.0)
            tl.store(cp, acc * alpha + old * beta)
        else:
            mask = (rn < n)[:, None] & (rm < m)[None, :]
            old = tl.load(cp, mask=mask & (use_c != 0), other=0.0)
            tl.store(cp, acc * alpha + old * beta, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "ldc", "alpha", "beta", "use_c", "count", "batch", "nb"])
def _reduce(W, C, m, n, ldc, alpha, beta, use_c, count, batch, nb, BS: tl.constexpr, BE: tl.constexpr):
    """C = alpha (sum of the pieces in W) + beta C."""
    pid = tl.program_id(0).to(tl.int64)
    q = pid // nb
    e = (pid - q * nb) * BE + tl.arange(0, BE)
    size = n.to(tl.int64) * m
    emask = e < size
    acc = tl.zeros((BS, BE), dtype=tl.float32)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        wp = W + ((ss * batch + q) * size)[:, None] + e[None, :]
        acc += tl.load(wp, mask=(ss < count)[:, None] & emask[None, :], other=0.0)
    r = tl.sum(acc, axis=0)
    j = e // m
    c = tl.load(C + q).to(tl.pointer_type(tl.float32))
    cp = c + j * ldc + (e - j * m)
    old = tl.load(cp, mask=emask & (use_c != 0), other=0.0)
    tl.store(cp, r * alpha + old * beta, mask=emask)


@triton.jit
def _work(ai, bi, ci, m, n, k, la, lb, lc, i0, j0, alpha, beta,
          TA: tl.constexpr, TB: tl.constexpr, EVM: tl.constexpr, EVN: tl.constexpr, EVK: tl.constexpr, USE_C: tl.constexpr,
          EARLY: tl.constexpr, VA: tl.constexpr, VC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # VA, VC: the addresses of A and B, of C are multiples of 16; else few registers and little shared memory count
    a = ai.to(tl.pointer_type(tl.float32))
    b = bi.to(tl.pointer_type(tl.float32))
    c = ci.to(tl.pointer_type(tl.float32))
    if VA:
        a = tl.multiple_of(a, 16)
        b = tl.multiple_of(b, 16)
    if VC:
        c = tl.multiple_of(c, 16)
    rm = i0 + tl.arange(0, BM)
    rn = j0 + tl.arange(0, BN)
    rk = tl.arange(0, BK)
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
    if USE_C and EARLY:
        old = tl.load(c + rn[:, None] * lc + rm[None, :])
    acc = tl.zeros((BN, BM), dtype=tl.float64)
    kk = k.to(tl.int32)
    for l in tl.range(0, kk, BK, num_stages=None if VA else 1):
        if EVK and EVN:
            x = tl.load(xp)
        elif EVK:
            x = tl.load(xp, mask=(rn < n)[:, None], other=0.0)
        else:
            x = tl.load(xp, mask=(rn < n)[:, None] & (rk < kk - l)[None, :], other=0.0)
        if EVK and EVM:
            y = tl.load(yp)
        elif EVK:
            y = tl.load(yp, mask=(rm < m)[None, :], other=0.0)
        else:
            y = tl.load(yp, mask=(rk < kk - l)[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    r = acc.to(tl.float32) * alpha
    cp = c + (rn * lc)[:, None] + rm[None, :]
    if EVM and EVN:
        if USE_C:
            if EARLY:
                r += old * beta
            else:
                r += tl.load(cp) * beta
        tl.store(cp, r)
    else:
        mask = (rn < n)[:, None] & (rm < m)[None, :]
        if USE_C:
            r += tl.load(cp, mask=mask, other=0.0) * beta
        tl.store(cp, r, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "tm", "tn"])
def _gemm64(A, B, C, m, n, k, lda, ldb, ldc, alpha, beta, tm, tn,
            TA: tl.constexpr, TB: tl.constexpr, EVM: tl.constexpr, EVN: tl.constexpr, EVK: tl.constexpr,
            USE_C: tl.constexpr, EARLY: tl.constexpr, LD4: tl.constexpr, LC4: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # LD4: lda and ldb are multiples of 4, LC4: ldc and m too; where addresses are so as well, 16 bytes move at a time
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    q = (pid // (tm * tn)).to(tl.int64)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    ai = tl.load(A + q)
    bi = tl.load(B + q)
    ci = tl.load(C + q)
    if LD4:
        la = tl.multiple_of(la, 4)
        lb = tl.multiple_of(lb, 4)
        if LC4:
            lc = tl.multiple_of(lc, 4)
            every = ai | bi | ci
        else:
            every = ai | bi
        if (every & 15) == 0:
            _work(ai, bi, ci, m, n, k, la, lb, lc, i0, j0, alpha, beta, TA, TB, EVM, EVN, EVK, USE_C, EARLY,
                  True, LC4, BM, BN, BK)
        else:
            _work(ai, bi, ci, m, n, k, la, lb, lc, i0, j0, alpha, beta, TA, TB, EVM, EVN, EVK, USE_C, False,
                  False, False, BM, BN, BK)
    else:
        _work(ai, bi, ci, m, n, k, la, lb, lc, i0, j0, alpha, beta, TA, TB, EVM, EVN, EVK, USE_C, False,
              False, False, BM, BN, BK)


def _tiles(m, n, batch):
    """Tile of C and number of warps: large tiles, but enough of them for the GPU."""
    bm = min(128, max(16, triton.next_power_of_2(m)))
    bn = min(128, max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 200 and max(bm, bn) > 64:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    area = bm * bn
    return bm, bn, 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 8192 else 8


def cublasSgemmBatched_64(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if m >= 48 and n >= 48 and k >= 8 and m * n * batchCount >= 64 * 64 * 128:
        if k > 256 and m % 128 == 0 and n % 64 == 0 and m * n * batchCount >= 64 * 128 * 132:
            bm, bn, bk, warps, stages = 128, 64, 16, 8, 3
        else:
            bm, bn, bk, warps, stages = 64, 64, 16, 4, 5
        tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
        if tm * tn * batchCount < 2 ** 31:
            more = {"maxnreg": 128} if Carray.device.type == "cuda" else {}
            _gemm64[(tm * tn * batchCount,)](Aarray, Barray, Carray, m, n, k, lda, ldb, ldc, float(alpha), float(beta), tm, tn,
                                             TA=transa != "N", TB=transb != "N", EVM=m % bm == 0, EVN=n % bn == 0,
                                             EVK=k % bk == 0, USE_C=beta != 0,
                                             EARLY=beta != 0 and warps == 4 and m % bm == 0 and n % bn == 0, LD4=lda % 4 == 0 and ldb % 4 == 0,
                                             LC4=ldc % 4 == 0 and m % 4 == 0, BM=bm, BN=bn, BK=bk,
                                             num_warps=warps, num_stages=stages, **more)
            return
    bm, bn, warps = _tiles(m, n, batchCount)
    bk, stages = 16, 3
    full = m % bm == 0 and n % bn == 0 and k % bk == 0
    fast = full and all(v % 16 == 0 for v in (lda, ldb, ldc))
    tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
    tiles = tm * tn * batchCount
    steps = triton.cdiv(k, bk)
    pieces = 1
    if tiles < 132 and k >= 2048:
        # long sums of few tiles are cut into pieces, which are added up afterwards
        pieces = min(triton.cdiv(396, tiles), k // 512)
        steps = triton.cdiv(steps, pieces)
        pieces = triton.cdiv(triton.cdiv(k, bk), steps)
    split = pieces > 1
    if split and steps * pieces * bk != k:
        fast = False  # the last piece is shorter
    W = torch.empty(pieces * batchCount * m * n, dtype=torch.float32, device=Carray.device) if split else Carray
    alpha, beta, use_c = float(alpha), float(beta), int(beta != 0)
    _gemm[(tiles, pieces)](Aarray, Barray, Carray, W, m, n, k, lda, ldb, ldc, alpha, beta, use_c, tm, tn, steps, batchCount,
                           TA=transa != "N", TB=transb != "N", FAST=fast, SPLIT=split, BM=bm, BN=bn, BK=bk,
                           num_warps=warps, num_stages=stages)
    if split:
        nb = triton.cdiv(m * n, 64)
        _reduce[(nb * batchCount,)](W, Carray, m, n, ldc, alpha, beta, use_c, pieces, batchCount, nb,
                                    BS=min(32, triton.next_power_of_2(pieces)), BE=64, num_warps=4)

