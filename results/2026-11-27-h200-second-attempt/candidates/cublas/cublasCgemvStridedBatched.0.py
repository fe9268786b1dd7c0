"""cublasCgemvStridedBatched: y = alpha op(A) x + beta y for every matrix of a batch at fixed strides.

A is worked on as a real matrix of twice as many rows, row 2 i + p holding the real (p = 0) or imaginary (p = 1) parts of
row i; the last axis of a tile runs down a column, along memory. For 'N' the real matrix is multiplied by Re x and by Im x
and neighbouring rows are put together at the end; for 'T' and 'C' a column is multiplied by two interleavings of x, one
for the real and one for the imaginary part. For 'N' a block owns BR rows and walks along the columns, otherwise it owns
BC columns and walks down the rows. Where that gives too few blocks, the sum is cut into pieces that go to scratch memory
and are added up by a second kernel, always in the same order.
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
        yb = y + (b * sty + y0) * 2
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
        yb = y + (b * sty + y0) * 2
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
    yb = y + (b * sty + y0) * 2
    py = yb + e * incy * 2
    _finish(py, tl.sum(re, axis=0), tl.sum(im, axis=0), emask, alr, ali, ber, bei, use_y)


def _pow2_divisor(v, limit=16):
    """The largest power of two, up to limit, that divides v."""
    d = 1
    while d < limit and v % (2 * d) == 0:
        d *= 2
    return d


def cublasCgemvStridedBatched(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
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

