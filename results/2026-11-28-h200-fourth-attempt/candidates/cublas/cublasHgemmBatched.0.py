"""cublasHgemmBatched: C = alpha op(A) op(B) + beta C for every matrix of a batch behind arrays of pointers.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 8 elements: then nothing is masked.
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


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "use_c"])
def _gemm(A, B, C, m, n, k, lda, ldb, ldc, alpha, beta, use_c,
          TA: tl.constexpr, TB: tl.constexpr, ALIGN: tl.constexpr, FAST: tl.constexpr,
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
        la = tl.multiple_of(la, 8)
        lb = tl.multiple_of(lb, 8)
        lc = tl.multiple_of(lc, 8)
    a = tl.multiple_of(tl.load(A + q).to(tl.pointer_type(tl.float16)), ALIGN)
    b = tl.multiple_of(tl.load(B + q).to(tl.pointer_type(tl.float16)), ALIGN)
    c = tl.multiple_of(tl.load(C + q).to(tl.pointer_type(tl.float16)), ALIGN)
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
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    for l in range(0, k, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < k - l
            x = tl.load(xp, mask=(rn < n)[:, None] & left[None, :], other=0.0)
            y = tl.load(yp, mask=left[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
        xp += xstep
        yp += ystep
    cp = c + rn[:, None] * lc + rm[None, :]
    if FAST:
        old = tl.load(cp, mask=use_c != 0, other=0.0).to(tl.float32)
        tl.store(cp, (acc * alpha + old * beta).to(tl.float16))
    else:
        mask = (rn < n)[:, None] & (rm < m)[None, :]
        old = tl.load(cp, mask=mask & (use_c != 0), other=0.0).to(tl.float32)
        tl.store(cp, (acc * alpha + old * beta).to(tl.float16), mask=mask)


def _tiles(m, n, k, batch):
    """Tile of C, its depth, number of warps and of stages: large tiles, but enough of them for the GPU."""
    bm = min(256, max(16, triton.next_power_of_2(m)))
    bn = min(128, max(16, triton.next_power_of_2(n)))
    if bm == 256 and (bn < 128 or k < 512):
        bm = 128
    if bm == 128 and m <= 128 and n >= 256 and k >= 512:
        bn = 256  # a wide tile reads the narrow A half as often
    if bm == 128 and bn == 128 and k <= 128 and batch >= 264:
        bn = 64  # bound by memory: more, smaller programs on each SM
    while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 120 and max(bm, bn) > 64:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    area = bm * bn
    bk = min(64, max(16, triton.next_power_of_2(k)))
    warps = 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 16384 else 8
    stages = 2 if k <= 2 * bk else 3 if area == 16384 else 4
    return bm, bn, bk, warps, stages


def cublasHgemmBatched(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    align = 2 if k == 0 else 16 if k % 8 == 0 else 4 if k % 2 == 0 else 2  # what is known of the addresses
    if alpha == 0:
        k = 0  # neither A nor B is read then
    bm, bn, bk, warps, stages = _tiles(m, n, k, batchCount)
    full = m % bm == 0 and n % bn == 0 and k % bk == 0
    fast = full and all(v % 8 == 0 for v in (lda, ldb, ldc))
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn) * batchCount,)
    _gemm[grid](Aarray, Barray, Carray, m, n, k, lda, ldb, ldc, float(alpha), float(beta), int(beta != 0),
                TA=transa != "N", TB=transb != "N",
                ALIGN=align, FAST=fast, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=stages)
