"""cublasSgemmEx: C = alpha op(A) op(B) + beta C.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 16 elements: then nothing is masked. Large products of float32 are formed by
the tensor cores in float64 (F64), whose speed is that of float32 elsewhere; large ones of 16-bit numbers by tensor descriptors.
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


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "use_c"])
def _gemm(A, B, C, m, n, k, lda, ldb, ldc, alpha, beta, use_c,
          TA: tl.constexpr, TB: tl.constexpr, WIDEN: tl.constexpr, FAST: tl.constexpr, F64: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tm = (m - 1) // BM + 1
    tn = (n - 1) // BN + 1
    pid = tl.program_id(0)
    im, jn = _tile(pid % (tm * tn), tm, tn)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    if FAST:
        la = tl.multiple_of(la, 16)
        lb = tl.multiple_of(lb, 16)
        lc = tl.multiple_of(lc, 16)
    a = A
    b = B
    c = C
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
    acc = tl.zeros((BN, BM), dtype=tl.float64 if F64 else tl.float32)
    for l in range(0, k, BK):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = tl.arange(0, BK) < k - l
            x = tl.load(xp, mask=(rn < n)[:, None] & left[None, :], other=0.0)
            y = tl.load(yp, mask=left[:, None] & (rm < m)[None, :], other=0.0)
        if F64:
            acc = tl.dot(x.to(tl.float64), y.to(tl.float64), acc, input_precision="ieee", out_dtype=tl.float64)
        else:
            if WIDEN:  # the interpreter multiplies no bfloat16
                x = x.to(tl.float32)
                y = y.to(tl.float32)
            acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
        xp += xstep
        yp += ystep
    cp = c + rn[:, None] * lc + rm[None, :]
    if F64:
        acc = acc.to(tl.float32)
    if FAST:
        old = tl.load(cp, mask=use_c != 0, other=0.0).to(tl.float32)
        tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty))
    else:
        mask = (rn < n)[:, None] & (rm < m)[None, :]
        old = tl.load(cp, mask=mask & (use_c != 0), other=0.0).to(tl.float32)
        tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty), mask=mask)


@triton.jit
def _put(cd, c, m, n, ldc, acc, i, j, ADD: tl.constexpr, BM: tl.constexpr, W: tl.constexpr):
    if ADD:
        # every element once: C need not come here
        ri = i + tl.arange(0, BM)
        rj = j + tl.arange(0, W)
        tl.atomic_add(c + (ri.to(tl.int64) * ldc)[:, None] + rj[None, :], acc, mask=(ri < n)[:, None] & (rj < m)[None, :],
                      sem="relaxed")
    else:
        cd.store([i, j], acc.to(cd.dtype))


@triton.jit
def _tma_tiles(xd, yd, cd, c, m, n, k, ldc, nm, nn, tiles, alpha, XT: tl.constexpr, YT: tl.constexpr, ADD: tl.constexpr, PERS: tl.constexpr,
               PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C transposed as a row-major product of op(B) transposed (n, k) and op(A) transposed (k, m); tiles number nm * nn. What
    is outside of the matrices reads as 0. PERS: a program a multiprocessor, tile after tile; ADD: C is added to."""
    kt = (k + BK - 1) // BK
    if PERS:
        for t in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            first = (t // (8 * nn)) * 8
            size = tl.minimum(nm - first, 8)
            i0 = (first + (t % (8 * nn)) % size) * BM
            j0 = ((t % (8 * nn)) // size) * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for l in range(kt):
                if XT:
                    x = xd.load([l * BK, i0]).T
                else:
                    x = xd.load([i0, l * BK])
                if YT:
                    y = yd.load([j0, l * BK]).T
                else:
                    y = yd.load([l * BK, j0])
                acc = tl.dot(x, y, acc)
            _out(cd, c, m, n, ldc, acc * alpha, i0, j0, ADD, PARTS, BM, BN)
    else:
        t = tl.program_id(0)
        first = (t // (8 * nn)) * 8
        size = tl.minimum(nm - first, 8)
        i0 = (first + (t % (8 * nn)) % size) * BM
        j0 = ((t % (8 * nn)) // size) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for l in range(kt):
            if XT:
                x = xd.load([l * BK, i0]).T
            else:
                x = xd.load([i0, l * BK])
            if YT:
                y = yd.load([j0, l * BK]).T
            else:
                y = yd.load([l * BK, j0])
            acc = tl.dot(x, y, acc)
        _out(cd, c, m, n, ldc, acc * alpha, i0, j0, ADD, PARTS, BM, BN)


@triton.jit
def _out(cd, c, m, n, ldc, acc, i0, j0, ADD: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # in parts, for which little shared memory suffices
    if PARTS == 1:
        _put(cd, c, m, n, ldc, acc, i0, j0, ADD, BM, BN)
    else:
        c0, c1 = acc.reshape(BM, 2, BN // 2).permute(0, 2, 1).split()
        if PARTS == 2:
            _put(cd, c, m, n, ldc, c0, i0, j0, ADD, BM, BN // 2)
            _put(cd, c, m, n, ldc, c1, i0, j0 + BN // 2, ADD, BM, BN // 2)
        else:
            c00, c01 = c0.reshape(BM, 2, BN // 4).permute(0, 2, 1).split()
            _put(cd, c, m, n, ldc, c00, i0, j0, ADD, BM, BN // 4)
            _put(cd, c, m, n, ldc, c01, i0, j0 + BN // 4, ADD, BM, BN // 4)
            c10, c11 = c1.reshape(BM, 2, BN // 4).permute(0, 2, 1).split()
            _put(cd, c, m, n, ldc, c10, i0, j0 + BN // 2, ADD, BM, BN // 4)
            _put(cd, c, m, n, ldc, c11, i0, j0 + BN // 2 + BN // 4, ADD, BM, BN // 4)


def _tma(ta, tb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    """Large products of 16-bit numbers by tensor descriptors; False where that is not possible."""
    if TensorDescriptor is None or max(m, n) >= 2 ** 30 or m < 256 or n < 128 or k < 512:
        return False
    f32 = C.dtype == torch.float32
    if not (beta == 0 or beta == 1 and f32):
        return False
    if lda % 8 or ldb % 8 or ldc % (4 if f32 else 8) or max(lda, ldb, ldc) >= 2 ** 31:
        return False
    if any(t.data_ptr() % 16 for t in (A, B, C)):
        return False
    BM, BN, BK, warps, stages = 128, 256, 64, 8, 4
    nm, nn = triton.cdiv(n, BM), triton.cdiv(m, BN)
    parts = 4 if f32 else 2
    if nm * nn < 110:
        BN, warps, stages, parts = 64, 4, 8, 1
        nn = triton.cdiv(m, BN)
        if not 60 <= nm * nn <= 132 or f32:
            return False
    tiles = nm * nn
    pers = tiles > 132
    if not pers and BN == 256:
        parts = 2
    try:
        xd = TensorDescriptor(B, [k, n], [ldb, 1], [BK, BM]) if tb else TensorDescriptor(B, [n, k], [ldb, 1], [BM, BK])
        yd = TensorDescriptor(A, [m, k], [lda, 1], [BN, BK]) if ta else TensorDescriptor(A, [k, m], [lda, 1], [BK, BN])
        cd = TensorDescriptor(C, [n, m], [ldc, 1], [BM, BN // parts])
        _tma_tiles[(min(tiles, 132),)](xd, yd, cd, C, m, n, k, ldc, nm, nn, tiles, alpha, XT=tb, YT=ta, ADD=beta == 1, PERS=pers,
                                       PARTS=parts, BM=BM, BN=BN, BK=BK, num_warps=warps, num_stages=stages)
    except Exception:
        return False
    return True


def _tiles16(m, n, k, batch):
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


def _tiles32(m, n, batch):
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


def cublasSgemmEx(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m <= 0 or n <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B is read then
    alpha, beta = float(alpha), float(beta)
    cuda = A.device.type == "cuda"
    f64 = False
    if Atype == torch.float32:
        bm, bn, warps = _tiles32(m, n, 1)
        bk, stages = 16, 3
        if (m % 128 == 0 and n % 64 == 0 and k % 16 == 0 and k >= 64 and m * n >= 64 * 128 * 66
                and all(v % 16 == 0 for v in (lda, ldb, ldc))):
            bm, bn, warps, f64 = 128, 64, 8, True
    else:
        if cuda and k > 0 and _tma(transa != "N", transb != "N", m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
            return
        bm, bn, bk, warps, stages = _tiles16(m, n, k, 1)
    full = m % bm == 0 and n % bn == 0 and k % bk == 0
    fast = full and all(v % 16 == 0 for v in (lda, ldb, ldc))
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
    # 128 registers: two programs a multiprocessor
    _gemm[grid](A, B, C, m, n, k, lda, ldb, ldc, alpha, beta, int(beta != 0),
                TA=transa != "N", TB=transb != "N", WIDEN=not cuda, FAST=fast, F64=f64, BM=bm, BN=bn, BK=bk,
                num_warps=warps, num_stages=stages, **({"maxnreg": 128} if f64 and cuda else {}))
