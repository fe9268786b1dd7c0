"""cublasCgemvStridedBatched: y = alpha op(A) x + beta y for every matrix of a batch at fixed strides.

A is worked on as a real matrix of twice as many rows, row 2 i + p holding the real (p = 0) or imaginary (p = 1) parts of
row i; the last axis of a tile runs down a column, along memory. For 'N' the real matrix is multiplied by Re x and by Im x
and neighbouring rows are put together at the end; for 'T' and 'C' a column is multiplied by two interleavings of x, one
for the real and one for the imaginary part. For 'N' a block owns BR rows and walks along the columns, otherwise it owns
BC columns and walks down the rows. Where that gives too few blocks, the sum is cut into pieces that go to scratch memory
and are added up by a second kernel, always in the same order.

That is the general path. The usual calls (x without gaps) take tiles of three axes: one that a thread walks alone, so that
its sum costs nothing, one over the groups of threads, and one along memory; what is left is summed once at the end.
"""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "sa", "stx", "sty",
                             "incx", "x0", "incy", "y0", "alr", "ali", "ber", "bei", "use_y", "nblk"])
def _gemv_n(A, x, y, W, rows_, cols_, piece, batch, lda, sa, stx, sty, incx, x0, incy, y0, alr, ali, ber, bei, use_y, nblk,
            RDIV: tl.constexpr, LDIV: tl.constexpr, XDIV: tl.constexpr, SPLIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    # nblk: blocks of rows of a matrix, counted by the host, since twice the rows may not fit in 32 bits
    pid = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    b = pid // nblk
    blk = pid - b * nblk
    m2 = tl.multiple_of(rows_.to(tl.int64), RDIV) * 2
    ld2 = tl.multiple_of(lda.to(tl.int64), LDIV) * 2
    ab = A + b * tl.multiple_of(sa.to(tl.int64), LDIV) * 2
    xb = x + b * tl.multiple_of(stx.to(tl.int64), XDIV) * 2
    rows = blk * BR + tl.arange(0, BR)
    rmask = rows < m2
    c0 = s * piece
    c1 = tl.minimum(c0 + piece, cols_)
    acc1 = tl.zeros((BC, BR), dtype=tl.float32)
    acc2 = tl.zeros((BC, BR), dtype=tl.float32)
    for c in range(c0, c1, BC):
        cols = c + tl.arange(0, BC)
        cmask = cols < c1
        xr = tl.load(xb + (x0 + cols * incx) * 2, mask=cmask, other=0.0)
        xi = tl.load(xb + (x0 + cols * incx) * 2 + 1, mask=cmask, other=0.0)
        a = tl.load(ab + cols[:, None] * ld2 + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
        acc1 += a * xr[:, None]
        acc2 += a * xi[:, None]
    rr, ir = tl.split(tl.reshape(tl.sum(acc1, axis=0), (BR // 2, 2)))  # Re A Re x, Im A Re x
    ri, ii = tl.split(tl.reshape(tl.sum(acc2, axis=0), (BR // 2, 2)))  # Re A Im x, Im A Im x
    re = rr - ii
    im = ri + ir
    i = blk * (BR // 2) + tl.arange(0, BR // 2)
    imask = i < rows_
    if SPLIT:
        pw = W + (s * batch + b) * m2 + i * 2
        tl.store(pw, re, mask=imask)
        tl.store(pw + 1, im, mask=imask)
    else:
        yb = y + (b * sty + y0.to(tl.int64)) * 2
        py = yb + i * incy * 2
        _finish(py, re, im, imask, alr, ali, ber, bei, use_y)


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "sa", "stx", "sty",
                             "incx", "x0", "incy", "y0", "alr", "ali", "ber", "bei", "use_y", "nblk"])
def _gemv_t(A, x, y, W, rows_, cols_, piece, batch, lda, sa, stx, sty, incx, x0, incy, y0, alr, ali, ber, bei, use_y, nblk,
            CONJ: tl.constexpr, RDIV: tl.constexpr, LDIV: tl.constexpr, XDIV: tl.constexpr, INC1: tl.constexpr, SPLIT: tl.constexpr,
            BR: tl.constexpr, BC: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    b = pid // nblk
    m2 = tl.multiple_of(rows_.to(tl.int64), RDIV) * 2
    ld2 = tl.multiple_of(lda.to(tl.int64), LDIV) * 2
    ab = A + b * tl.multiple_of(sa.to(tl.int64), LDIV) * 2
    xb = x + b * tl.multiple_of(stx.to(tl.int64), XDIV) * 2
    cols = (pid - b * nblk) * BC + tl.arange(0, BC)
    cmask = cols < cols_
    ac = ab + cols[:, None] * ld2
    r0 = s * piece  # piece is a multiple of BR
    r1 = tl.minimum(r0 + piece, m2)
    odd = (tl.arange(0, BR) % 2) == 1
    acc1 = tl.zeros((BC, BR), dtype=tl.float32)
    acc2 = tl.zeros((BC, BR), dtype=tl.float32)
    for r in range(r0, r1, BR):
        r = tl.multiple_of(r, BR)
        rows = r + tl.arange(0, BR)
        rmask = rows < m2
        # x's own part beside A's part of the same row, and the other part
        if INC1:
            px = rows
        else:
            px = (x0 + (rows // 2) * incx) * 2 + rows % 2
        own = tl.load(xb + px, mask=rmask, other=0.0)
        other = tl.load(xb + tl.where(odd, px - 1, px + 1), mask=rmask, other=0.0)
        if CONJ:  # conj(a) x = (ar xr + ai xi) + (ar xi - ai xr) i
            u = own
            v = tl.where(odd, -other, other)
        else:  # a x = (ar xr - ai xi) + (ar xi + ai xr) i
            u = tl.where(odd, -own, own)
            v = other
        a = tl.load(ac + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
        acc1 += a * u[None, :]
        acc2 += a * v[None, :]
    re = tl.sum(acc1, axis=1)
    im = tl.sum(acc2, axis=1)
    if SPLIT:
        pw = W + ((s * batch + b) * cols_ + cols) * 2
        tl.store(pw, re, mask=cmask)
        tl.store(pw + 1, im, mask=cmask)
    else:
        yb = y + (b * sty + y0.to(tl.int64)) * 2
        py = yb + cols * incy * 2
        _finish(py, re, im, cmask, alr, ali, ber, bei, use_y)


@triton.jit
def _finish(py, re, im, mask, alr, ali, ber, bei, use_y):
    """y = alpha (re, im) + beta y; y is not read with beta = 0."""
    ar = alr
    ai = ali
    br = ber
    bi = bei
    yr = tl.load(py, mask=mask & (use_y != 0), other=0.0)
    yi = tl.load(py + 1, mask=mask & (use_y != 0), other=0.0)
    tl.store(py, (re * ar - im * ai) + (yr * br - yi * bi), mask=mask)
    tl.store(py + 1, (re * ai + im * ar) + (yr * bi + yi * br), mask=mask)


@triton.jit(do_not_specialize=["length", "count", "batch", "sty", "incy",
                             "y0", "alr", "ali", "ber", "bei", "use_y", "nb"])
def _reduce(W, y, length, count, batch, sty, incy, y0, alr, ali, ber, bei, use_y, nb, BS: tl.constexpr, BE: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    b = pid // nb
    e = (pid - b * nb) * BE + tl.arange(0, BE)
    emask = e < length
    re = tl.zeros((BS, BE), dtype=tl.float32)
    im = tl.zeros((BS, BE), dtype=tl.float32)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        w = W + ((ss * batch + b) * length)[:, None] * 2 + e[None, :] * 2
        mask = (ss < count)[:, None] & emask[None, :]
        re += tl.load(w, mask=mask, other=0.0)
        im += tl.load(w + 1, mask=mask, other=0.0)
    yb = y + (b * sty + y0.to(tl.int64)) * 2
    py = yb + e * incy * 2
    _finish(py, tl.sum(re, axis=0), tl.sum(im, axis=0), emask, alr, ali, ber, bei, use_y)


def _pow2_divisor(v, limit=16):
    """The largest power of two, up to limit, that divides v."""
    d = 1
    while d < limit and v % (2 * d) == 0:
        d *= 2
    return d


def _general(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    plain = trans == "N"
    alpha, beta = complex(alpha), complex(beta)
    xlen, ylen = (n, m) if plain else (m, n)
    x0 = (xlen - 1) * -incx if incx < 0 else 0
    y0 = (ylen - 1) * -incy if incy < 0 else 0
    terms = 0 if alpha == 0 else (n if plain else 2 * m)  # with alpha = 0 neither A nor x is read
    use_y = int(beta != 0)
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    # tiles of A
    if plain:
        BR = min(256, max(16, triton.next_power_of_2(2 * m)))
        BC = 4096 // BR
        nblk, step = triton.cdiv(2 * m, BR), BC
    else:
        BR = min(512, max(16, triton.next_power_of_2(2 * m)))
        BC = min(4096 // BR, max(4, triton.next_power_of_2(n)))
        nblk, step = triton.cdiv(n, BC), BR
    blocks = nblk * batchCount
    # pieces of the sum, where the output alone gives too few blocks
    pieces, piece = 1, max(terms, 1)
    if blocks < 264 and terms > 4 * step:
        pieces = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * step))
        piece = triton.cdiv(triton.cdiv(terms, pieces), step) * step
        pieces = triton.cdiv(terms, piece)
    split = pieces > 1
    if not plain and not split:
        piece = triton.cdiv(piece, BR) * BR
    W = torch.empty(2 * pieces * batchCount * ylen, dtype=torch.float32, device=y.device) if split else torch.view_as_real(y)
    Av, xv, yv = torch.view_as_real(A), torch.view_as_real(x), torch.view_as_real(y)
    rdiv, ldiv = _pow2_divisor(m), _pow2_divisor(lda, _pow2_divisor(strideA))
    grid = (blocks, pieces)
    if plain:
        _gemv_n[grid](Av, xv, yv, W, m, terms, piece, batchCount, lda, strideA, stridex, stridey, incx, x0, incy, y0, *scalars, use_y, nblk,
                      RDIV=rdiv, LDIV=ldiv, XDIV=_pow2_divisor(stridex, 4), SPLIT=split, BR=BR, BC=BC, num_warps=8)
    else:
        _gemv_t[grid](Av, xv, yv, W, terms // 2, n, piece, batchCount, lda, strideA, stridex, stridey, incx, x0, incy, y0, *scalars, use_y, nblk, CONJ=trans == "C",
                      RDIV=rdiv, LDIV=ldiv, XDIV=_pow2_divisor(stridex, 4), INC1=incx == 1, SPLIT=split, BR=BR, BC=BC, num_warps=8)
    if split:
        BS = min(32, triton.next_power_of_2(pieces))
        _reduce[(triton.cdiv(ylen, 32) * batchCount,)](W, yv, ylen, pieces, batchCount, stridey, incy, y0, *scalars, use_y,
                                                       triton.cdiv(ylen, 32), BS=BS, BE=32, num_warps=4)


@triton.jit
def _parts(v):
    """The real and imaginary part of a complex64 that was loaded as one int64."""
    return v.to(tl.int32).to(tl.float32, bitcast=True), (v >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _dot_n(base, xb, ld, rleft, count, EVEN: tl.constexpr, U: tl.constexpr, G: tl.constexpr, BR: tl.constexpr):
    """The sums of BR rows over count columns: U columns one after another in a thread, G beside one another."""
    r = tl.arange(0, BR)
    j = tl.arange(0, U)[:, None] * G + tl.arange(0, G)[None, :]
    off = j[:, :, None] * ld + r[None, None, :]
    rm = (r < rleft)[None, None, :]
    acc1 = tl.zeros((G, BR), dtype=tl.float32)
    acc2 = tl.zeros((G, BR), dtype=tl.float32)
    full = count // (U * G)
    if full > 0:
        # the next tile is loaded before the sums of one that has come are waited for: all its loads are under way together
        if EVEN:
            a = tl.load(base + off, eviction_policy="evict_first")
            xv = tl.load(xb + j)
        else:
            a = tl.load(base + off, mask=rm, other=0, eviction_policy="evict_first")
            xv = tl.load(xb + j)
        for _ in range(1, full):
            ar, ai = _parts(a)
            xr, xi = _parts(xv)
            acc1 += tl.sum(ar * xr[:, :, None] - ai * xi[:, :, None], axis=0)
            acc2 += tl.sum(ar * xi[:, :, None] + ai * xr[:, :, None], axis=0)
            base += ld.to(tl.int64) * (U * G)
            xb += U * G
            if EVEN:
                a = tl.load(base + off, eviction_policy="evict_first")
                xv = tl.load(xb + j)
            else:
                a = tl.load(base + off, mask=rm, other=0, eviction_policy="evict_first")
                xv = tl.load(xb + j)
        ar, ai = _parts(a)
        xr, xi = _parts(xv)
        acc1 += tl.sum(ar * xr[:, :, None] - ai * xi[:, :, None], axis=0)
        acc2 += tl.sum(ar * xi[:, :, None] + ai * xr[:, :, None], axis=0)
        base += ld.to(tl.int64) * (U * G)
        xb += U * G
    left = count - full * (U * G)
    if left > 0:
        jm = j < left
        a = tl.load(base + off, mask=jm[:, :, None] & rm, other=0, eviction_policy="evict_first")
        xv = tl.load(xb + j, mask=jm, other=0)
        ar, ai = _parts(a)
        xr, xi = _parts(xv)
        acc1 += tl.sum(ar * xr[:, :, None] - ai * xi[:, :, None], axis=0)
        acc2 += tl.sum(ar * xi[:, :, None] + ai * xr[:, :, None], axis=0)
    return tl.sum(acc1, axis=0), tl.sum(acc2, axis=0)


@triton.jit
def _dot_t(base, xb, ld, cleft, count, CONJ: tl.constexpr, EVEN: tl.constexpr, U: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    """The sums of P columns over count rows: U pieces of BR rows one after another in a thread."""
    p = tl.arange(0, P)
    i = tl.arange(0, U)[:, None] * BR + tl.arange(0, BR)[None, :]
    off = (p * ld)[None, :, None] + i[:, None, :]
    pm = (p < cleft)[None, :, None]
    acc1 = tl.zeros((P, BR), dtype=tl.float32)
    acc2 = tl.zeros((P, BR), dtype=tl.float32)
    full = count // (U * BR)
    if full > 0:
        # the next tile is loaded before the sums of one that has come are waited for: all its loads are under way together
        if EVEN:
            a = tl.load(base + off, eviction_policy="evict_first")
            xv = tl.load(xb + i)
        else:
            a = tl.load(base + off, mask=pm, other=0, eviction_policy="evict_first")
            xv = tl.load(xb + i)
        for _ in range(1, full):
            ar, ai = _parts(a)
            xr, xi = _parts(xv)
            if CONJ:
                acc1 += tl.sum(ar * xr[:, None, :] + ai * xi[:, None, :], axis=0)
                acc2 += tl.sum(ar * xi[:, None, :] - ai * xr[:, None, :], axis=0)
            else:
                acc1 += tl.sum(ar * xr[:, None, :] - ai * xi[:, None, :], axis=0)
                acc2 += tl.sum(ar * xi[:, None, :] + ai * xr[:, None, :], axis=0)
            base += U * BR
            xb += U * BR
            if EVEN:
                a = tl.load(base + off, eviction_policy="evict_first")
                xv = tl.load(xb + i)
            else:
                a = tl.load(base + off, mask=pm, other=0, eviction_policy="evict_first")
                xv = tl.load(xb + i)
        ar, ai = _parts(a)
        xr, xi = _parts(xv)
        if CONJ:
            acc1 += tl.sum(ar * xr[:, None, :] + ai * xi[:, None, :], axis=0)
            acc2 += tl.sum(ar * xi[:, None, :] - ai * xr[:, None, :], axis=0)
        else:
            acc1 += tl.sum(ar * xr[:, None, :] - ai * xi[:, None, :], axis=0)
            acc2 += tl.sum(ar * xi[:, None, :] + ai * xr[:, None, :], axis=0)
        base += U * BR
        xb += U * BR
    left = count - full * (U * BR)
    if left > 0:
        im_ = i < left
        a = tl.load(base + off, mask=im_[:, None, :] & pm, other=0, eviction_policy="evict_first")
        xv = tl.load(xb + i, mask=im_, other=0)
        ar, ai = _parts(a)
        xr, xi = _parts(xv)
        if CONJ:
            acc1 += tl.sum(ar * xr[:, None, :] + ai * xi[:, None, :], axis=0)
            acc2 += tl.sum(ar * xi[:, None, :] - ai * xr[:, None, :], axis=0)
        else:
            acc1 += tl.sum(ar * xr[:, None, :] - ai * xi[:, None, :], axis=0)
            acc2 += tl.sum(ar * xi[:, None, :] + ai * xr[:, None, :], axis=0)
    return tl.sum(acc1, axis=1), tl.sum(acc2, axis=1)


@triton.jit
def _fast_put(py, re, im, mask, alr, ali, ber, bei, use_y):
    ar = alr
    ai = ali
    o1 = re * ar - im * ai
    o2 = re * ai + im * ar
    if use_y != 0:
        br = ber
        bi = bei
        yr = tl.load(py, mask=mask, other=0.0)
        yi = tl.load(py + 1, mask=mask, other=0.0)
        o1 += yr * br - yi * bi
        o2 += yr * bi + yi * br
    tl.store(py, o1, mask=mask)
    tl.store(py + 1, o2, mask=mask)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "pieces", "ldq", "sa", "stx", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _fast_n(A, x, y, W, nblk, rows, cols, piece, pieces, ldq, sa, stx, sty, incy, y0, alr, ali, ber, bei, use_y,
            LDIV: tl.constexpr, SDIV: tl.constexpr, XDIV: tl.constexpr, EVEN: tl.constexpr, SPLIT: tl.constexpr, U: tl.constexpr, G: tl.constexpr, BR: tl.constexpr):
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    r0 = (pid % nblk) * BR
    c0 = s * piece
    count = tl.minimum(cols - c0, piece)
    start = c0.to(tl.int64) * ld + r0
    xs = c0
    rleft = rows - r0
    re, im = _dot_n(A + (b * (sa.to(tl.int64) * SDIV) + start), x + (b * (stx.to(tl.int64) * XDIV) + xs), ld, rleft, count, EVEN, U, G, BR)
    e = r0 + tl.arange(0, BR)
    length = rows
    emask = e < length
    e = e.to(tl.int64)
    if SPLIT:
        pw = W + ((b * length + e) * pieces + s) * 2
        tl.store(pw, re, mask=emask)
        tl.store(pw + 1, im, mask=emask)
    else:
        py = y + (b * sty + y0.to(tl.int64)) * 2 + e * incy * 2
        _fast_put(py, re, im, emask, alr, ali, ber, bei, use_y)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "pieces", "ldq", "sa", "stx", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _fast_t(A, x, y, W, nblk, rows, cols, piece, pieces, ldq, sa, stx, sty, incy, y0, alr, ali, ber, bei, use_y,
            CONJ: tl.constexpr, LDIV: tl.constexpr, SDIV: tl.constexpr, XDIV: tl.constexpr, EVEN: tl.constexpr, SPLIT: tl.constexpr, U: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    c0 = (pid % nblk) * P
    r0 = s * piece * BR  # here piece counts rows in units of BR
    count = tl.minimum(rows - r0, piece * BR)
    start = c0.to(tl.int64) * ld + r0
    xs = r0
    cleft = cols - c0
    re, im = _dot_t(A + (b * (sa.to(tl.int64) * SDIV) + start), x + (b * (stx.to(tl.int64) * XDIV) + xs), ld, cleft, count, CONJ, EVEN, U, P, BR)
    e = c0 + tl.arange(0, P)
    length = cols
    emask = e < length
    e = e.to(tl.int64)
    if SPLIT:
        pw = W + ((b * length + e) * pieces + s) * 2
        tl.store(pw, re, mask=emask)
        tl.store(pw + 1, im, mask=emask)
    else:
        py = y + (b * sty + y0.to(tl.int64)) * 2 + e * incy * 2
        _fast_put(py, re, im, emask, alr, ali, ber, bei, use_y)


@triton.jit(do_not_specialize=["nblk", "length", "pieces", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _fast_reduce(W, y, nblk, length, pieces, sty, incy, y0, alr, ali, ber, bei, use_y, BE: tl.constexpr, BS: tl.constexpr):
    pid = tl.program_id(0)
    b = (pid // nblk).to(tl.int64)
    e = (pid % nblk) * BE + tl.arange(0, BE)
    emask = e < length
    e = e.to(tl.int64)
    s = tl.arange(0, BS)

    pw = W + (((b * length + e) * pieces)[:, None] + s[None, :]) * 2
    mask = emask[:, None] & (s < pieces)[None, :]
    py = y + (b * sty + y0.to(tl.int64)) * 2 + e * incy * 2
    re = tl.sum(tl.load(pw, mask=mask, other=0.0), axis=1)
    im = tl.sum(tl.load(pw + 1, mask=mask, other=0.0), axis=1)
    _fast_put(py, re, im, emask, alr, ali, ber, bei, use_y)


def _fast(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    """The usual calls: increments of x of 1, a tile of A within 32-bit offsets. False where the call is none of them."""
    plain = trans == "N"
    batch = batchCount
    if alpha == 0 or incx != 1 or m < 16 or n < 8 or m > 2 ** 29:
        return False
    rows = m * 1
    size = rows * n * batch * 8
    pieces, piece = 1, 0
    if plain:
        top = triton.next_power_of_2(rows)
        BR, warps, U, regs = 0, 4, 8, None
        for width in ((1024, 512, 256) if size > 2 ** 25 else (1024, 512, 256, 128, 64)):
            BR = min(width // 8, top)
            if triton.cdiv(rows, BR) * batch >= (264 if width > 128 else 200):
                break
        nblk = triton.cdiv(rows, BR)
        blocks = nblk * batch
        if blocks < 264 and size > 2 ** 25:
            BR = min(64, top)
            nblk = triton.cdiv(rows, BR)
            blocks = nblk * batch
            G = max(1, 128 * 2 // BR)
            pieces = max(1, min(triton.cdiv(792, blocks), n // (2 * U * G)))
            piece = triton.cdiv(triton.cdiv(n, pieces), U * G) * (U * G)
            pieces = triton.cdiv(n, piece)
        elif blocks < 400:
            warps = 8
            if blocks < 264:
                U = 16
            else:
                regs = 80  # three blocks of eight warps on each SM
        G = max(1, 32 * warps * 2 // BR)
        U = max(1, min(U, triton.next_power_of_2(n) // G))
        reach = U * G * lda * 1 + BR
        even = rows % BR == 0
    else:
        if rows >= 1024:
            BR, U, P, warps = 32, 2, 32, 4
        else:
            BR, U, P, warps = 16, 4, 32, 4
        P = min(P, triton.next_power_of_2(n))
        nblk = triton.cdiv(n, P)
        blocks = nblk * batch
        if blocks < 200 and rows > 8 * U * BR:
            pieces = min(triton.cdiv(792, blocks), rows // (4 * U * BR), 1024)
            piece = triton.cdiv(triton.cdiv(rows, pieces), U * BR) * (U * BR)
            pieces = triton.cdiv(rows, piece)
        reach = P * lda * 1 + U * BR
        even = n % P == 0
    if reach >= 2 ** 31 or blocks >= 2 ** 31:
        return False
    split = pieces > 1
    if not split:
        piece = n if plain else rows + BR
    if not plain:
        piece //= BR
    ylen = m if plain else n
    y0 = (ylen - 1) * -incy if incy < 0 else 0
    use_y = int(beta != 0)
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    Av, xv, yv = A.view(torch.int64), x.view(torch.int64), torch.view_as_real(y)
    ldiv = _pow2_divisor(lda * 1, 4)
    sdiv = _pow2_divisor(strideA * 1, 4)
    xdiv = _pow2_divisor(stridex * 1, 4)
    W = torch.empty(2 * pieces * batch * ylen, dtype=torch.float32, device=y.device) if split else yv
    grid = (blocks, pieces)
    if plain:
        _fast_n[grid](Av, xv, yv, W, nblk, rows, n, piece, pieces, lda * 1 // ldiv, strideA * 1 // sdiv, stridex * 1 // xdiv, stridey, incy, y0, *scalars, use_y,
                      LDIV=ldiv, SDIV=sdiv, XDIV=xdiv, EVEN=even, SPLIT=split, U=U, G=G, BR=BR, num_warps=warps, maxnreg=regs)
    else:
        _fast_t[grid](Av, xv, yv, W, nblk, rows, n, piece, pieces, lda * 1 // ldiv, strideA * 1 // sdiv, stridex * 1 // xdiv, stridey, incy, y0, *scalars, use_y,
                      CONJ=trans == "C", LDIV=ldiv, SDIV=sdiv, XDIV=xdiv, EVEN=even, SPLIT=split, U=U, P=P, BR=BR, num_warps=warps)
    if split:
        BS = triton.next_power_of_2(pieces)
        BE = max(1, 1024 // BS)
        nblk = triton.cdiv(ylen, BE)
        _fast_reduce[(nblk * batch,)](W, yv, nblk, ylen, pieces, stridey, incy, y0, *scalars, use_y,
                                      BE=BE, BS=BS, num_warps=4)
    return True


@triton.jit
def _lean_add(py, re, im, alr, ali):
    ar = alr
    ai = ali
    tl.atomic_add(py, re * ar - im * ai, sem="relaxed")
    tl.atomic_add(py + 1, re * ai + im * ar, sem="relaxed")


@triton.jit
def _cols(base, xb, off, j, U: tl.constexpr):
    """The sums over U columns."""
    a = tl.load(base + off, eviction_policy="evict_first")
    xv = tl.load(xb + j)
    ar, ai = _parts(a)
    xr, xi = _parts(xv)
    return (tl.sum(ar * xr[:, None] - ai * xi[:, None], axis=0),
            tl.sum(ar * xi[:, None] + ai * xr[:, None], axis=0))


@triton.jit
def _walk_n(base, xb, ld, count, ONE: tl.constexpr, NS: tl.constexpr, U: tl.constexpr, BR: tl.constexpr):
    j = tl.arange(0, U)
    off = j[:, None] * ld + tl.arange(0, BR)[None, :]
    if ONE:
        t1, t2 = _cols(base, xb, off, j, U)
    else:
        t1 = tl.zeros((BR,), dtype=tl.float32)
        t2 = tl.zeros((BR,), dtype=tl.float32)
        for _ in tl.range(0, count // U, num_stages=NS):
            d1, d2 = _cols(base, xb, off, j, U)
            t1 += d1
            t2 += d2
            base += ld.to(tl.int64) * U
            xb += U
    return t1, t2


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "batch", "ldq", "sa", "stx", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _lean_n(A, x, y, W, nblk, rows, cols, piece, batch, ldq, sa, stx, sty, incy, y0, alr, ali, ber, bei, use_y,
            LDIV: tl.constexpr, SDIV: tl.constexpr, XDIV: tl.constexpr, MODE: tl.constexpr, ONE: tl.constexpr, NS: tl.constexpr, U: tl.constexpr, BR: tl.constexpr):
    """BR rows, walking along the columns U at a time; everything divides evenly, so nothing is masked."""
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    r0 = (pid % nblk) * BR
    c0 = s * piece
    count = tl.minimum(cols - c0, piece)
    base = A + (b * (sa.to(tl.int64) * SDIV) + c0.to(tl.int64) * ld + r0)
    xb = x + (b * (stx.to(tl.int64) * XDIV) + c0)
    re, im = _walk_n(base, xb, ld, count, ONE, NS, U, BR)
    e = r0 + tl.arange(0, BR)
    e64 = e.to(tl.int64)
    if MODE == 1:
        pw = W + ((s.to(tl.int64) * batch + b) * rows + e64) * 2
        tl.store(pw, re)
        tl.store(pw + 1, im)
    else:
        py = y + (b * sty + y0) * 2 + e64 * incy * 2
        if MODE == 2:
            _lean_add(py, re, im, alr, ali)
        else:
            _fast_put(py, re, im, e >= 0, alr, ali, ber, bei, use_y)


@triton.jit
def _mac(acc1, acc2, a, xv, CONJ: tl.constexpr):
    ar, ai = _parts(a)
    xr, xi = _parts(xv[None, :])
    if CONJ:
        acc1 += ar * xr + ai * xi
        acc2 += ar * xi - ai * xr
    else:
        acc1 += ar * xr - ai * xi
        acc2 += ar * xi + ai * xr
    return acc1, acc2


@triton.jit
def _walk_t(base, xb, ld, count, CONJ: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    r = tl.arange(0, BR)
    off = (tl.arange(0, P) * ld)[:, None] + r[None, :]
    acc1 = tl.zeros((P, BR), dtype=tl.float32)
    acc2 = tl.zeros((P, BR), dtype=tl.float32)
    for _ in tl.range(0, count // BR, num_stages=4):
        a0 = tl.load(base + off, eviction_policy="evict_first")
        x0 = tl.load(xb + r)
        acc1, acc2 = _mac(acc1, acc2, a0, x0, CONJ)
        base += BR
        xb += BR
    return tl.sum(acc1, axis=1), tl.sum(acc2, axis=1)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "batch", "ldq", "sa", "stx", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _lean_t(A, x, y, W, nblk, rows, cols, piece, batch, ldq, sa, stx, sty, incy, y0, alr, ali, ber, bei, use_y,
            CONJ: tl.constexpr, LDIV: tl.constexpr, SDIV: tl.constexpr, XDIV: tl.constexpr, MODE: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    """P columns, walking down the rows BR at a time; everything divides evenly, so nothing is masked."""
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    c0 = (pid % nblk) * P
    r0 = s * piece * BR  # here piece counts rows in units of BR
    count = tl.minimum(rows - r0, piece * BR)
    base = A + (b * (sa.to(tl.int64) * SDIV) + c0.to(tl.int64) * ld + r0)
    xb = x + (b * (stx.to(tl.int64) * XDIV) + r0)
    re, im = _walk_t(base, xb, ld, count, CONJ, P, BR)
    e = c0 + tl.arange(0, P)
    e64 = e.to(tl.int64)
    if MODE == 1:
        pw = W + ((s.to(tl.int64) * batch + b) * cols + e64) * 2
        tl.store(pw, re)
        tl.store(pw + 1, im)
    else:
        py = y + (b * sty + y0) * 2 + e64 * incy * 2
        if MODE == 2:
            _lean_add(py, re, im, alr, ali)
        else:
            _fast_put(py, re, im, e >= 0, alr, ali, ber, bei, use_y)


@triton.jit(do_not_specialize=["nblk", "length", "pieces", "batch", "sty", "incy", "y0", "alr", "ali", "ber", "bei", "use_y"])
def _lean_reduce(W, y, nblk, length, pieces, batch, sty, incy, y0, alr, ali, ber, bei, use_y, BE: tl.constexpr, BS: tl.constexpr):
    pid = tl.program_id(0)
    b = (pid // nblk).to(tl.int64)
    e = (pid % nblk) * BE + tl.arange(0, BE)
    emask = e < length
    e = e.to(tl.int64)
    s = tl.arange(0, BS).to(tl.int64)
    pw = W + ((s * batch + b)[:, None] * length + e[None, :]) * 2
    mask = emask[None, :] & (s < pieces)[:, None]
    py = y + (b * sty + y0) * 2 + e * incy * 2
    re = tl.sum(tl.load(pw, mask=mask, other=0.0), axis=0)
    im = tl.sum(tl.load(pw + 1, mask=mask, other=0.0), axis=0)
    _fast_put(py, re, im, emask, alr, ali, ber, bei, use_y)


def _lean(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    """Where tiles cover the matrix without remainder: no masks, little code. False where the call is not like that."""
    plain = trans == "N"
    batch = batchCount
    if alpha == 0 or incx != 1 or m > 2 ** 29 or n > 2 ** 29:
        return False
    rows = m * 1
    pieces, P, one = 1, 1, False
    if plain:
        if rows % 64 == 0 and rows <= 128 and n % 16 == 0 and batch * rows >= 64 * 1056:
            U, BR, warps = 8, 64, 1
        elif rows % 256 == 0 and rows >= 4096 and n >= 256 and n % 8 == 0:
            U, BR, warps = 8, 256, 4
            pieces = max(1, min(triton.cdiv(1440, rows // 256 * batch), n // 64))
        else:
            return False
        one = n == U
        nblk = rows // BR
        piece = triton.cdiv(triton.cdiv(n, pieces), U) * U
        pieces = triton.cdiv(n, piece)
        reach = U * lda * 1 + BR
    else:
        BR, P, warps = (512, 4, 4) if rows >= 4096 and rows % 512 == 0 and n * batchCount >= 8192 else (256, 8, 4)
        if rows % BR or n % P or n // P * batch < 396 or rows < 1024:
            return False
        nblk = n // P
        piece = rows // BR
        reach = P * lda * 1 + BR
    if reach >= 2 ** 31 or nblk * batch >= 2 ** 31 or (pieces > 1 and nblk * batch * pieces >= 2 ** 20):
        return False
    ylen = m if plain else n
    y0 = (ylen - 1) * -incy if incy < 0 else 0
    use_y = int(beta != 0)
    mode = 0 if pieces == 1 else (2 if beta == 1 else 1)  # 2: the pieces are added to y at once
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    Av, xv, yv = A.view(torch.int64), x.view(torch.int64), torch.view_as_real(y)
    ldiv = _pow2_divisor(lda * 1, 4)
    sdiv = _pow2_divisor(strideA * 1, 4)
    xdiv = _pow2_divisor(stridex * 1, 4)
    W = torch.empty(2 * pieces * batch * ylen, dtype=torch.float32, device=y.device) if mode == 1 else yv
    grid = (nblk * batch, pieces)
    if plain:
        _lean_n[grid](Av, xv, yv, W, nblk, rows, n, piece, batch, lda * 1 // ldiv, strideA * 1 // sdiv, stridex * 1 // xdiv, stridey, incy, y0, *scalars, use_y,
                      LDIV=ldiv, SDIV=sdiv, XDIV=xdiv, MODE=mode, ONE=one, NS=4, U=U, BR=BR, num_warps=warps)
    else:
        _lean_t[grid](Av, xv, yv, W, nblk, rows, n, piece, batch, lda * 1 // ldiv, strideA * 1 // sdiv, stridex * 1 // xdiv, stridey, incy, y0, *scalars, use_y,
                      CONJ=trans == "C", LDIV=ldiv, SDIV=sdiv, XDIV=xdiv, MODE=mode, P=P, BR=BR, num_warps=warps)
    if mode == 1:
        BS = triton.next_power_of_2(pieces)
        BE = max(1, 2048 // BS)
        BE = min(BE, 32)
        nblk = triton.cdiv(ylen, BE)
        _lean_reduce[(nblk * batch,)](W, yv, nblk, ylen, pieces, batch, stridey, incy, y0, *scalars, use_y,
                                      BE=BE, BS=BS, num_warps=4)
    return True


def cublasCgemvStridedBatched(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if _lean(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
        return
    if not _fast(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
        _general(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount)
