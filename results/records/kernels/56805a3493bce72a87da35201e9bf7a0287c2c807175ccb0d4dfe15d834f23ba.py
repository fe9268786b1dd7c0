"""cublasSgemvStridedBatched: y = alpha op(A) x + beta y for every matrix of a batch at fixed strides.

The last axis of a tile of A runs down a column, along memory. For 'N' a block owns BR rows and walks along the columns,
for 'T' it owns BC columns and walks down the rows. Where that gives too few blocks, the sum is cut into pieces that go to
scratch memory and are added up by a second kernel, always in the same order. A block whose sum is one step long gets fewer
warps, each with more loads under way, and for 'T' a larger tile: there starting and ending blocks costs most.
"""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "sa", "stx",
                             "sty", "incx", "x0", "incy", "y0", "alpha", "beta", "use_y"])
def _gemv_n(A, x, y, W, rows_, cols_, piece, batch, lda, sa, stx, sty, incx, x0, incy, y0, alpha, beta, use_y,
            RDIV: tl.constexpr, LDIV: tl.constexpr, XDIV: tl.constexpr, SPLIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    al = alpha
    be = beta
    nrb = (rows_ - 1) // BR + 1
    pid = tl.program_id(0)
    s = tl.program_id(1).to(tl.int64)
    b = (pid // nrb).to(tl.int64)
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = A + b * tl.multiple_of(sa.to(tl.int64), LDIV)
    xb = x + b * tl.multiple_of(stx.to(tl.int64), XDIV)
    rows = (pid % nrb).to(tl.int64) * BR + tl.arange(0, BR)
    rmask = rows < m
    c0 = s * piece
    c1 = tl.minimum(c0 + piece, cols_)
    acc = tl.zeros((BC, BR), dtype=tl.float32)
    for c in range(c0, c1, BC):
        cols = c + tl.arange(0, BC)
        cmask = cols < c1
        xv = tl.load(xb + (x0 + cols * incx), mask=cmask, other=0.0)
        a = tl.load(ab + cols[:, None] * ld + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
        acc += a * xv[:, None]
    total = tl.sum(acc, axis=0)
    if SPLIT:
        tl.store(W + (s * batch + b) * m + rows, total, mask=rmask)
    else:
        yb = y + (b * sty + y0)
        py = yb + rows * incy
        old = tl.load(py, mask=rmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=rmask)


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "sa", "stx",
                             "sty", "incx", "x0", "incy", "y0", "alpha", "beta", "use_y"])
def _gemv_t(A, x, y, W, rows_, cols_, piece, batch, lda, sa, stx, sty, incx, x0, incy, y0, alpha, beta, use_y,
            RDIV: tl.constexpr, LDIV: tl.constexpr, XDIV: tl.constexpr, INC1: tl.constexpr, SPLIT: tl.constexpr,
            BR: tl.constexpr, BC: tl.constexpr):
    al = alpha
    be = beta
    ncb = (cols_ - 1) // BC + 1
    pid = tl.program_id(0)
    s = tl.program_id(1).to(tl.int64)
    b = (pid // ncb).to(tl.int64)
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = A + b * tl.multiple_of(sa.to(tl.int64), LDIV)
    xb = x + b * tl.multiple_of(stx.to(tl.int64), XDIV)
    cols = (pid % ncb).to(tl.int64) * BC + tl.arange(0, BC)
    cmask = cols < cols_
    ac = ab + cols[:, None] * ld
    r0 = s * piece  # piece is a multiple of BR
    r1 = tl.minimum(r0 + piece, m)
    acc = tl.zeros((BC, BR), dtype=tl.float32)
    for r in range(r0, r1, BR):
        r = tl.multiple_of(r, BR)
        rows = r + tl.arange(0, BR)
        rmask = rows < m
        if INC1:
            xv = tl.load(xb + rows, mask=rmask, other=0.0)
        else:
            xv = tl.load(xb + (x0 + rows * incx), mask=rmask, other=0.0)
        a = tl.load(ac + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
        acc += a * xv[None, :]
    total = tl.sum(acc, axis=1)
    if SPLIT:
        tl.store(W + (s * batch + b) * cols_ + cols, total, mask=cmask)
    else:
        yb = y + (b * sty + y0)
        py = yb + cols * incy
        old = tl.load(py, mask=cmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=cmask)


@triton.jit(do_not_specialize=["length", "count", "batch", "sty", "incy", "y0", "alpha", "beta", "use_y"])
def _reduce(W, y, length, count, batch, sty, incy, y0, alpha, beta, use_y, BS: tl.constexpr, BE: tl.constexpr):
    al = alpha
    be = beta
    nb = (length - 1) // BE + 1
    pid = tl.program_id(0)
    b = (pid // nb).to(tl.int64)
    e = (pid % nb).to(tl.int64) * BE + tl.arange(0, BE)
    emask = e < length
    acc = tl.zeros((BS, BE), dtype=tl.float32)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        w = W + ((ss * batch + b) * length)[:, None] + e[None, :]
        acc += tl.load(w, mask=(ss < count)[:, None] & emask[None, :], other=0.0)
    total = tl.sum(acc, axis=0)
    yb = y + (b * sty + y0)
    py = yb + e * incy
    old = tl.load(py, mask=emask & (use_y != 0), other=0.0)
    tl.store(py, al * total + be * old, mask=emask)


def _pow2_divisor(v, limit=16):
    """The largest power of two, up to limit, that divides v."""
    d = 1
    while d < limit and v % (2 * d) == 0:
        d *= 2
    return d


def cublasSgemvStridedBatched(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    plain = trans == "N"
    xlen, ylen = (n, m) if plain else (m, n)
    x0 = (xlen - 1) * -incx if incx < 0 else 0
    y0 = (ylen - 1) * -incy if incy < 0 else 0
    terms = 0 if alpha == 0 else (n if plain else m)  # with alpha = 0 neither A nor x is read
    use_y = int(beta != 0)
    scalars = (float(alpha), float(beta))
    # tiles of A
    warps = 8
    if plain:
        BR = min(256, max(16, triton.next_power_of_2(m)))
        BC = 4096 // BR
        blocks, step = triton.cdiv(m, BR) * batchCount, BC
        if n <= BC and blocks >= 264:
            warps = 4
    else:
        BR = min(512, max(16, triton.next_power_of_2(m)))
        BC = min(4096 // BR, max(4, triton.next_power_of_2(n)))
        if m <= BR:
            BC2 = min(8192 // BR, max(4, triton.next_power_of_2(n)))
            if triton.cdiv(n, BC2) * batchCount >= 1056:
                BC, warps = BC2, 4
        blocks, step = triton.cdiv(n, BC) * batchCount, BR
    # pieces of the sum, where the output alone gives too few blocks
    pieces, piece = 1, max(terms, 1)
    if blocks < 264 and terms > 4 * step:
        pieces = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * step))
        piece = triton.cdiv(triton.cdiv(terms, pieces), step) * step
        pieces = triton.cdiv(terms, piece)
    split = pieces > 1
    if not plain and not split:
        piece = triton.cdiv(piece, BR) * BR
    W = torch.empty(pieces * batchCount * ylen, dtype=torch.float32, device=y.device) if split else y
    rdiv, ldiv = _pow2_divisor(m), _pow2_divisor(lda, _pow2_divisor(strideA))
    grid = (blocks, pieces)
    if plain:
        _gemv_n[grid](A, x, y, W, m, terms, piece, batchCount, lda, strideA, stridex, stridey, incx, x0, incy, y0, *scalars, use_y,
                      RDIV=rdiv, LDIV=ldiv, XDIV=_pow2_divisor(stridex, 4), SPLIT=split, BR=BR, BC=BC, num_warps=warps)
    else:
        _gemv_t[grid](A, x, y, W, terms, n, piece, batchCount, lda, strideA, stridex, stridey, incx, x0, incy, y0, *scalars, use_y,
                      RDIV=rdiv, LDIV=ldiv, XDIV=_pow2_divisor(stridex, 4), INC1=incx == 1, SPLIT=split, BR=BR, BC=BC,
                      num_warps=warps)
    if split:
        BS = min(32, triton.next_power_of_2(pieces))
        _reduce[(triton.cdiv(ylen, 32) * batchCount,)](W, y, ylen, pieces, batchCount, stridey, incy, y0, *scalars, use_y,
                                                       BS=BS, BE=32, num_warps=4)
