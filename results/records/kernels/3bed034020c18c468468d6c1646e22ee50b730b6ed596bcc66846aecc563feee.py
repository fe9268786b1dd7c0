"""cublasHgemmStridedBatched: C = alpha op(A) op(B) + beta C for every matrix of a batch at fixed strides.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 8 elements: then nothing is masked.
"""
import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except Exception:
    TensorDescriptor = None


@triton.jit
def _tile(t, tm, tn):
    """Tile number t as (row of tiles, column of tiles), in bands of 8 columns, so that neighbours share L2."""
    width = 8 * tm
    first = (t // width) * 8
    size = tl.minimum(tn - first, 8)
    r = t % width
    return r // size, first + r % size


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "sa", "sb", "sc", "alpha", "beta", "use_c"])
def _gemm(A, B, C, m, n, k, lda, ldb, ldc, sa, sb, sc, alpha, beta, use_c,
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
        la = tl.multiple_of(la, 8)
        lb = tl.multiple_of(lb, 8)
        lc = tl.multiple_of(lc, 8)
    oa = sa.to(tl.int64)
    ob = sb.to(tl.int64)
    oc = sc.to(tl.int64)
    if FAST:
        oa = tl.multiple_of(oa, 8)
        ob = tl.multiple_of(ob, 8)
        oc = tl.multiple_of(oc, 8)
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
        tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty))
    else:
        mask = (rn < n)[:, None] & (rm < m)[None, :]
        old = tl.load(cp, mask=mask & (use_c != 0), other=0.0).to(tl.float32)
        tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty), mask=mask)


def _tiles(m, n, k, batch):
    """Tile of C, its depth, number of warps and of stages: large tiles, but enough of them for the GPU."""
    bm = min(256, max(16, triton.next_power_of_2(m)))
    bn = min(128, max(16, triton.next_power_of_2(n)))
    if bm == 256 and (bn < 128 or k < 512):
        bm = 128
    while triton.cdiv(m, bm) * triton.cdiv(n, bn) * batch < 120 and max(bm, bn) > 64:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    area = bm * bn
    bk = min(64, max(16, triton.next_power_of_2(k)))
    warps = 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 16384 else 8
    return bm, bn, bk, warps, 2 if k <= 2 * bk else 3 if area >= 16384 else 4


@triton.jit(do_not_specialize=["alpha"])
def _gemm_tma(ad, bd, cd, nm, nn, tiles, K, alpha, ONE: tl.constexpr, AT: tl.constexpr, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, GM: tl.constexpr, SUB: tl.constexpr):
    # one program a multiprocessor, tile after tile; what is outside of the matrices reads as 0
    per = nm * nn
    kt = tl.cdiv(K, BK)
    for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        z = t // per
        u = t % per
        first = (u // (GM * nn)) * GM
        gsz = tl.minimum(nm - first, GM)
        m0 = (first + (u % (GM * nn)) % gsz) * BM
        n0 = ((u % (GM * nn)) // gsz) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(kt):
            if AT:
                x = ad.load([z, k * BK, m0]).reshape(BK, BM).T
            else:
                x = ad.load([z, m0, k * BK]).reshape(BM, BK)
            if BT:
                y = bd.load([z, n0, k * BK]).reshape(BN, BK).T
            else:
                y = bd.load([z, k * BK, n0]).reshape(BK, BN)
            acc = tl.dot(x, y, acc)
        if not ONE:
            acc = acc * alpha
        if SUB:
            h = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1)
            c0, c1 = h.split()
            cd.store([z, m0, n0], c0.to(cd.dtype).reshape(1, BM, BN // 2))
            cd.store([z, m0, n0 + BN // 2], c1.to(cd.dtype).reshape(1, BM, BN // 2))
        else:
            cd.store([z, m0, n0], acc.to(cd.dtype).reshape(1, BM, BN))


@triton.jit(do_not_specialize=["alpha"])
def _rows_tma(ad, bd, cd, nm, nn, alpha, ONE: tl.constexpr, AT: tl.constexpr, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr):
    # few terms a sum (K up to BK): a program keeps its rows of the first matrix and goes along the columns
    pid = tl.program_id(0)
    z = pid // nm
    m0 = (pid % nm) * BM
    if AT:
        x = ad.load([z, 0, m0]).reshape(BK, BM).T
    else:
        x = ad.load([z, m0, 0]).reshape(BM, BK)
    for j in tl.range(0, nn):
        if BT:
            y = bd.load([z, j * BN, 0]).reshape(BN, BK).T
        else:
            y = bd.load([z, 0, j * BN]).reshape(BK, BN)
        acc = tl.dot(x, y)
        if not ONE:
            acc = acc * alpha
        cd.store([z, m0, j * BN], acc.to(cd.dtype).reshape(1, BM, BN))


def _tma(ta, tb, m, n, k, alpha, A, lda, sa, B, ldb, sb, C, ldc, sc, batch):
    """Large products by tensor descriptors: C transposed = op(B) transposed times op(A) transposed, row-major.

    Returns False where that is not possible.
    """
    if TensorDescriptor is None or k <= 64 or m < 128 or n < 128 or max(m, n, k, batch) >= 2 ** 30:
        return False
    if any(v % 8 != 0 for v in (lda, ldb, ldc)) or any(t.data_ptr() % 16 != 0 for t in (A, B, C)):
        return False
    if batch > 1 and any(v % 8 != 0 or v <= 0 for v in (sa, sb, sc)):
        return False
    if any(s * (batch - 1) + ld * max(m, n, k) >= 2 ** 38 for s, ld in ((sa, lda), (sb, ldb), (sc, ldc))):
        return False

    def desc(t, rows, cols, ld, s, block):
        return TensorDescriptor(t, [batch, rows, cols], [s if batch > 1 else rows * ld, ld, 1], [1] + block)

    at, bt = tb, ta
    small = k <= 128
    if small:
        BM, BN, BK = 256, 128, 128
    elif k >= 256:
        BM, BN, BK = 128, 256, 64
    else:
        return False
    nm, nn = triton.cdiv(n, BM), triton.cdiv(m, BN)
    if small and (n < 256 or m < 512 or not 396 <= batch * nm < 2 ** 30):
        return False
    if not 264 <= batch * nm * nn < 2 ** 30:
        return False
    try:
        ad = desc(B, k, n, ldb, sb, [BK, BM]) if at else desc(B, n, k, ldb, sb, [BM, BK])
        bd = desc(A, m, k, lda, sa, [BN, BK]) if bt else desc(A, k, m, lda, sa, [BK, BN])
        cd = desc(C, n, m, ldc, sc, [BM, BN if small else BN // 2])
        one = alpha == 1.0
        if small:
            _rows_tma[(batch * nm,)](ad, bd, cd, nm, nn, alpha, ONE=one, AT=at, BT=bt, BM=BM, BN=BN, BK=BK,
                                     num_warps=8, num_stages=3)
        else:
            _gemm_tma[(132,)](ad, bd, cd, nm, nn, batch * nm * nn, k, alpha, ONE=one, AT=at, BT=bt, BM=BM, BN=BN,
                              BK=BK, GM=8, SUB=True, num_warps=8, num_stages=4)
    except Exception:
        return False
    return True


def cublasHgemmStridedBatched(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if beta == 0 and C.device.type == "cuda":
        if _tma(transa != "N", transb != "N", m, n, k, float(alpha), A, lda, strideA, B, ldb, strideB, C, ldc, strideC,
                batchCount):
            return
    bm, bn, bk, warps, stages = _tiles(m, n, k, batchCount)
    full = m % bm == 0 and n % bn == 0 and k % bk == 0
    fast = full and all(v % 8 == 0 for v in (lda, ldb, ldc, strideA, strideB, strideC))
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn) * batchCount,)
    _gemm[grid](A, B, C, m, n, k, lda, ldb, ldc, strideA, strideB, strideC, float(alpha), float(beta), int(beta != 0),
                TA=transa != "N", TB=transb != "N", FAST=fast, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=stages)

