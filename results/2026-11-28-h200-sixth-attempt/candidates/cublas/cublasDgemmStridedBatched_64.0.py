"""cublasDgemmStridedBatched_64: C = alpha op(A) op(B) + beta C for every matrix of a batch at fixed strides.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 16 elements: then nothing is masked. MODE says where C comes in: 0 not at
all, 1 at the end, 2 before all products (where alpha is 1).
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


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "sa", "sb", "sc", "alpha", "beta", "tm", "tn"])
def _gemm(A, B, C, tm, tn, m, n, k, lda, ldb, ldc, sa, sb, sc, alpha, beta,
          TA: tl.constexpr, TB: tl.constexpr, FAST: tl.constexpr, MODE: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # tm and tn come from Python: m + BM may pass 32 bits
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
    oa = sa.to(tl.int64)
    ob = sb.to(tl.int64)
    oc = sc.to(tl.int64)
    if FAST:
        oa = tl.multiple_of(oa, 16)
        ob = tl.multiple_of(ob, 16)
        oc = tl.multiple_of(oc, 16)
    a = A + q * oa
    b = B + q * ob
    c = C + q * oc
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
    cp = c + rn[:, None] * lc + rm[None, :]
    mask = (rn < n)[:, None] & (rm < m)[None, :]
    if MODE == 2:
        if FAST:
            acc = tl.load(cp) * _f64(beta)
        else:
            acc = tl.load(cp, mask=mask, other=0.0) * _f64(beta)
    else:
        acc = tl.zeros((BN, BM), dtype=tl.float64)
    for l in range(0, k, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < k - l
            x = tl.load(xp, mask=(rn < n)[:, None] & left[None, :], other=0.0)
            y = tl.load(yp, mask=left[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float64)
        xp += xstep
        yp += ystep
    if MODE != 2:
        acc = acc * _f64(alpha)
    if MODE == 1:
        if FAST:
            acc += tl.load(cp) * _f64(beta)
        else:
            acc += tl.load(cp, mask=mask, other=0.0) * _f64(beta)
    if FAST:
        tl.store(cp, acc)
    else:
        tl.store(cp, acc, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "k", "total", "lda", "ldb", "ldc", "sa", "sb", "sc", "alpha", "beta", "use_c"])
def _tiny(A, B, C, m, n, k, total, lda, ldb, ldc, sa, sb, sc, alpha, beta, use_c,
          TA: tl.constexpr, TB: tl.constexpr, BE: tl.constexpr):
    """Very many very small products: an element of C for every lane."""
    e = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    mask = e < total
    mn = m * n
    q = e // mn
    r = e - q * mn
    j = r // m
    i = r - j * m
    if TA:
        ap = A + q * sa + i * lda
        astep = lda * 0 + 1
    else:
        ap = A + q * sa + i
        astep = lda
    if TB:
        bp = B + q * sb + j
        bstep = ldb
    else:
        bp = B + q * sb + j * ldb
        bstep = ldb * 0 + 1
    acc = tl.zeros((BE,), dtype=tl.float64)
    for l in range(0, k):
        acc += tl.load(ap, mask=mask, other=0.0) * tl.load(bp, mask=mask, other=0.0)
        ap += astep
        bp += bstep
    cp = C + q * sc + i + j * ldc
    old = tl.load(cp, mask=mask & (use_c != 0), other=0.0)
    tl.store(cp, acc * _f64(alpha) + old * _f64(beta), mask=mask)


def _tiles(m, n, batch):
    """Tile of C and number of warps: large tiles, but enough of them for the GPU."""
    bm = min(128, max(16, triton.next_power_of_2(m)))
    bn = min(64, max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 200 and max(bm, bn) > 32:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    area = bm * bn
    return bm, bn, 1 if area <= 256 else 2 if area <= 1024 else 4 if area <= 4096 else 8


def cublasDgemmStridedBatched_64(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if batchCount >= 65536 and m * n <= 64 and k <= 64:
        total = m * n * batchCount
        _tiny[(triton.cdiv(total, 256),)](A, B, C, m, n, k, total, lda, ldb, ldc, strideA, strideB, strideC,
                                          _bits(alpha), _bits(beta), int(beta != 0),
                                          TA=transa != "N", TB=transb != "N", BE=256, num_warps=4)
        return
    bm, bn, warps = _tiles(m, n, batchCount)
    bk, stages = 16, 3
    mode = 0 if beta == 0 else 2 if alpha == 1 else 1
    if mode == 1 and bm * bn > 4096:
        bm, bn = 64, 64  # there C and the products are in registers at a time
    aligned = k % bk == 0 and all(v % 16 == 0 for v in (lda, ldb, ldc, strideA, strideB, strideC))
    regs = None
    if aligned and mode != 1 and m % 128 == 0 and n % 64 == 0 and k >= 256 and (m // 128) * (n // 64) * batchCount >= 200:
        # 64 x 32 elements a warp, two programs a multiprocessor: little is read from shared memory
        bm, bn, warps, stages, regs = 128, 64, 4, 4, 240
    elif aligned and mode != 1 and m % 64 == 0 and n % 64 == 0 and (m // 64) * (n // 64) * batchCount >= 264:
        # four programs a multiprocessor: some load and store while others multiply
        bm, bn, warps, stages, regs = 64, 64, 4, 4, 128
    full = m % bm == 0 and n % bn == 0
    fast = full and aligned
    if regs is None and fast and bm * bn >= 8192:
        regs = 128
    tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
    grid = (tm * tn * batchCount,)
    _gemm[grid](A, B, C, tm, tn, m, n, k, lda, ldb, ldc, strideA, strideB, strideC, _bits(alpha), _bits(beta),
                TA=transa != "N", TB=transb != "N", FAST=fast, MODE=mode, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=stages,
                maxnreg=regs)

