"""cublasSgemm_v2: C = alpha op(A) op(B) + beta C.

The tiles hold C transposed (rows of a tile are columns of C), so that their last axis runs along memory. FAST says that
all tiles are full and all strides multiples of 16 elements: then nothing is masked. Where C has few tiles and k is long,
k is cut into pieces whose sums go to scratch memory and are added up by a second kernel.
Large products without odd sizes run on the tensor cores: each float32 is the sum of three bfloat16 numbers, which together
hold all of its 24 bits, and six products of those keep what float32 keeps of a product (bf16x6). Sums stay in float32.
That holds for numbers whose third part bfloat16 can still hold: a tile that meets smaller ones (zeros are none), or whose
sums are tiny or not finite, is computed once more, in float32.
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


@triton.jit(do_not_specialize=["m", "n", "k", "kc", "tm", "tn", "lda", "ldb", "ldc", "alpha", "beta", "use_c"])
def _gemm(A, B, C, W, m, n, k, kc, tm, tn, lda, ldb, ldc, alpha, beta, use_c,
          TA: tl.constexpr, TB: tl.constexpr, SPLIT: tl.constexpr, FAST: tl.constexpr,
          BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = m.to(tl.int64)
    n = n.to(tl.int64)
    im, jn = _tile(tl.program_id(0), tm, tn)
    i0 = im.to(tl.int64) * BM
    j0 = jn.to(tl.int64) * BN
    la = lda.to(tl.int64)
    lb = ldb.to(tl.int64)
    lc = ldc.to(tl.int64)
    if FAST:
        la = tl.multiple_of(la, 16)
        lb = tl.multiple_of(lb, 16)
        lc = tl.multiple_of(lc, 16)
    if SPLIT:
        s = tl.program_id(1).to(tl.int64)
        k0 = s * kc  # kc is a multiple of BK
        if FAST:
            k0 = tl.multiple_of(k0, 16)
        kl = tl.minimum(k - k0, kc).to(tl.int32)
        steps = tl.cdiv(kl, BK)
    else:
        k0 = 0
        kl = k
        steps = tl.cdiv(k, BK)
    rm = i0 + tl.arange(0, BM)
    rn = j0 + tl.arange(0, BN)
    ko = tl.arange(0, BK)
    rk = k0 + ko
    # y: op(A) transposed, (BK, BM); x: op(B) transposed, (BN, BK)
    if TA:
        yp = A + rk[:, None] + rm[None, :] * la
        ystep = BK
    else:
        yp = A + rk[:, None] * la + rm[None, :]
        ystep = la * BK
    if TB:
        xp = B + rn[:, None] + rk[None, :] * lb
        xstep = lb * BK
    else:
        xp = B + rn[:, None] * lb + rk[None, :]
        xstep = BK
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    # counted in steps: k + BK may not fit into 32 bits
    for l in range(0, steps):
        if FAST:
            x = tl.load(xp)
            y = tl.load(yp)
        else:
            left = ko < kl - l * BK
            x = tl.load(xp, mask=(rn < n)[:, None] & left[None, :], other=0.0)
            y = tl.load(yp, mask=left[:, None] & (rm < m)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
        xp += xstep
        yp += ystep
    if SPLIT:
        wp = W + (s * n + rn)[:, None] * m + rm[None, :]
        tl.store(wp, acc, mask=(rn < n)[:, None] & (rm < m)[None, :])
    else:
        cp = C + rn[:, None] * lc + rm[None, :]
        if FAST:
            old = tl.load(cp, mask=use_c != 0, other=0.0).to(tl.float32)
            tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty))
        else:
            mask = (rn < n)[:, None] & (rm < m)[None, :]
            old = tl.load(cp, mask=mask & (use_c != 0), other=0.0).to(tl.float32)
            tl.store(cp, (acc * alpha + old * beta).to(C.dtype.element_ty), mask=mask)


@triton.jit
def _three(x):
    """x as the sum of three bfloat16 numbers, to the last bit; the first two are rounded to the nearest."""
    h = (x.to(tl.int32, bitcast=True) + 0x8000) & -65536
    r = x - h.to(tl.float32, bitcast=True)
    m = (r.to(tl.int32, bitcast=True) + 0x8000) & -65536
    l = (r - m.to(tl.float32, bitcast=True)).to(tl.int32, bitcast=True)
    return ((h >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True), (m >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True),
            (l >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True))


@triton.jit
def _least(x, R: tl.constexpr, Q: tl.constexpr):
    """Least size of each 4 neighbours, those of one thread, of x, (R, 4 * Q)."""
    return tl.min(tl.reshape(tl.abs(x), (R, Q, 4)), axis=2)


@triton.jit(do_not_specialize=["m", "n", "k", "tm", "tn", "lda", "ldb", "ldc", "alpha", "beta", "use_c"])
def _gemm6(A, B, C, m, n, k, tm, tn, lda, ldb, ldc, alpha, beta, use_c,
           TA: tl.constexpr, TB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           PREC: tl.constexpr):
    # sizes and leading dimensions are multiples of 16, k of BK; m >= BM and n >= BN: the last tiles are moved back
    # until they are full, and write only what no other tile does
    im, jn = _tile(tl.program_id(0), tm, tn)
    i1 = im.to(tl.int64) * BM
    j1 = jn.to(tl.int64) * BN
    i0 = tl.multiple_of(tl.minimum(i1, m.to(tl.int64) - BM), 16)
    j0 = tl.multiple_of(tl.minimum(j1, n.to(tl.int64) - BN), 16)
    la = tl.multiple_of(lda.to(tl.int64), 16)
    lb = tl.multiple_of(ldb.to(tl.int64), 16)
    lc = tl.multiple_of(ldc.to(tl.int64), 16)
    rm = i0 + tl.arange(0, BM)
    rn = j0 + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    if TA:
        yp = A + rk[:, None] + rm[None, :] * la
        ystep = BK
    else:
        yp = A + rk[:, None] * la + rm[None, :]
        ystep = la * BK
    if TB:
        xp = B + rn[:, None] + rk[None, :] * lb
        xstep = lb * BK
    else:
        xp = B + rn[:, None] * lb + rk[None, :]
        xstep = BK
    acc = tl.zeros((BN, BM), dtype=tl.float32)
    xq = xp
    yq = yp
    if TB:
        vx = tl.full((BK, BN // 4), 1.0, dtype=tl.float32)
    else:
        vx = tl.full((BN, BK // 4), 1.0, dtype=tl.float32)
    if TA:
        vy = tl.full((BM, BK // 4), 1.0, dtype=tl.float32)
    else:
        vy = tl.full((BK, BM // 4), 1.0, dtype=tl.float32)
    for l in range(0, k // BK):
        x = tl.load(xp)
        y = tl.load(yp)
        if TB:
            vx = tl.minimum(vx, _least(tl.trans(x), BK, BN // 4))
        else:
            vx = tl.minimum(vx, _least(x, BN, BK // 4))
        if TA:
            vy = tl.minimum(vy, _least(tl.trans(y), BM, BK // 4))
        else:
            vy = tl.minimum(vy, _least(y, BK, BM // 4))
        if PREC == "ieee":
            acc = tl.dot(x, y, acc, input_precision="ieee", out_dtype=tl.float32)
        else:
            xh, xm, xl = _three(x)
            yh, ym, yl = _three(y)
            t = tl.dot(xm, ym, out_dtype=tl.float32)
            t = tl.dot(xl, yh, t, out_dtype=tl.float32)
            t = tl.dot(xh, yl, t, out_dtype=tl.float32)
            t = tl.dot(xm, yh, t, out_dtype=tl.float32)
            t = tl.dot(xh, ym, t, out_dtype=tl.float32)
            acc += tl.dot(xh, yh, t, out_dtype=tl.float32)
        xp += xstep
        yp += ystep
    TINY: tl.constexpr = 7.888609052210118e-31  # 2**-100
    size = tl.abs(acc)
    good = (acc == 0.0) | ((size >= TINY) & (size < float("inf")))
    bad = tl.min(tl.min(good.to(tl.int32), axis=1), axis=0) == 0
    v = tl.minimum(tl.min(tl.min(vx, axis=1), axis=0), tl.min(tl.min(vy, axis=1), axis=0))
    if v < TINY:
        # tiny numbers or mere zeros?
        xp = xq
        yp = yq
        fx = tl.zeros((BN, BK), dtype=tl.int32)
        fy = tl.zeros((BK, BM), dtype=tl.int32)
        for l in tl.range(0, k // BK, num_stages=1):
            x = tl.abs(tl.load(xp))
            y = tl.abs(tl.load(yp))
            fx |= ((x < TINY) & (x > 0.0)).to(tl.int32)
            fy |= ((y < TINY) & (y > 0.0)).to(tl.int32)
            xp += xstep
            yp += ystep
        bad |= tl.max(tl.max(fx, axis=1), axis=0) + tl.max(tl.max(fy, axis=1), axis=0) > 0
    if bad:
        # in pieces of 64 columns
        r16 = tl.arange(0, 16)
        if TB:
            xb = B + rn[:, None] + r16[None, :] * lb
            xinc = lb * 16
        else:
            xb = B + rn[:, None] * lb + r16[None, :]
            xinc = 16
        for h in range(0, BM, 64):
            rh = i0 + h + tl.arange(0, 64)
            if TA:
                yf = A + r16[:, None] + rh[None, :] * la
                yinc = 16
            else:
                yf = A + r16[:, None] * la + rh[None, :]
                yinc = la * 16
            xf = xb
            sums = tl.zeros((BN, 64), dtype=tl.float32)
            for l in tl.range(0, k // 16, num_stages=1):
                sums = tl.dot(tl.load(xf), tl.load(yf), sums, input_precision="ieee", out_dtype=tl.float32)
                xf += xinc
                yf += yinc
            cf = C + rn[:, None] * lc + rh[None, :]
            keep = (rn >= j1)[:, None] & (rh >= i1)[None, :]
            old = tl.load(cf, mask=keep & (rh < use_c.to(tl.int64) * m)[None, :], other=0.0)
            tl.store(cf, sums * alpha + old * beta, mask=keep)
    else:
        cp = C + rn[:, None] * lc + rm[None, :]
        mask = (rn >= j1)[:, None] & (rm >= i1)[None, :]
        before = tl.load(cp, mask=mask & (rm < use_c.to(tl.int64) * m)[None, :], other=0.0)
        tl.store(cp, acc * alpha + before * beta, mask=mask)


@triton.jit(do_not_specialize=["m", "n", "count", "ldc", "alpha", "beta", "use_c"])
def _reduce(W, C, m, n, count, ldc, alpha, beta, use_c, BS: tl.constexpr, BE: tl.constexpr):
    mn = m.to(tl.int64) * n
    e = tl.program_id(0).to(tl.int64) * BE + tl.arange(0, BE)
    keep = e < mn
    acc = tl.zeros((BS, BE), dtype=tl.float32)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        acc += tl.load(W + (ss * mn)[:, None] + e[None, :], mask=(ss < count)[:, None] & keep[None, :], other=0.0)
    j = e // m
    cp = C + (e - j * m) + j * ldc
    old = tl.load(cp, mask=keep & (use_c != 0), other=0.0)
    tl.store(cp, tl.sum(acc, axis=0) * alpha + old * beta, mask=keep)


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


def cublasSgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m <= 0 or n <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B is read then
    if (64 <= k <= 1 << 17 and k % 32 == 0 and m >= 128 and n >= 64 and m * n >= 1 << 18
            and all(v % 16 == 0 for v in (m, n, lda, ldb, ldc))):
        bm = 128 if triton.cdiv(m, 128) * triton.cdiv(n, 64) >= 200 else 64
        tm, tn = triton.cdiv(m, bm), triton.cdiv(n, 64)
        prec = "bf16x6" if C.is_cuda else "ieee"  # the interpreter knows only the latter
        _gemm6[(tm * tn,)](A, B, C, m, n, k, tm, tn, lda, ldb, ldc, float(alpha), float(beta), int(beta != 0),
                           TA=transa != "N", TB=transb != "N", BM=bm, BN=64, BK=32, PREC=prec, num_warps=4, num_stages=3)
        return
    bm, bn, warps = _tiles(m, n, 1)
    bk, stages = 16, 3
    tm, tn = triton.cdiv(m, bm), triton.cdiv(n, bn)
    pieces, kc = 1, k
    if tm * tn < 66 and k >= 4096:
        pieces = min(triton.cdiv(k, 1024), 264 // (tm * tn))
    if k > 1 << 20:  # no program is to work for seconds
        pieces = max(pieces, triton.cdiv(k, 1 << 19))
    if pieces > 1:
        kc = triton.cdiv(triton.cdiv(k, pieces), bk) * bk
        pieces = triton.cdiv(k, kc)
    full = m % bm == 0 and n % bn == 0 and k % bk == 0
    fast = full and all(v % 16 == 0 for v in (lda, ldb, ldc))
    W = torch.empty(pieces * m * n, dtype=torch.float32, device=C.device) if pieces > 1 else C
    alpha, beta = float(alpha), float(beta)
    _gemm[(tm * tn, pieces)](A, B, C, W, m, n, k, kc, tm, tn, lda, ldb, ldc, alpha, beta, int(beta != 0),
                             TA=transa != "N", TB=transb != "N", SPLIT=pieces > 1, FAST=fast,
                             BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages)
    if pieces > 1:
        BS = min(64, triton.next_power_of_2(pieces))
        BE = max(16, 2048 // BS)
        _reduce[(triton.cdiv(m * n, BE),)](W, C, m, n, pieces, ldc, alpha, beta, int(beta != 0), BS=BS, BE=BE, num_warps=4)

