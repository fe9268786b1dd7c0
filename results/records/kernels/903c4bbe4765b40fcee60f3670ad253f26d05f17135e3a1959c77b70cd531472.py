"""cublasDgemvBatched: y = alpha op(A) x + beta y for every matrix of a batch behind arrays of pointers.

The last axis of a tile of A runs down a column, along memory. For 'N' a block owns BR rows and walks along the columns,
for 'T' it owns BC columns and walks down the rows. Where that gives too few blocks, the sum is cut into pieces that go to
scratch memory and are added up by a second kernel, always in the same order.
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


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "incx",
                             "x0", "incy", "y0", "alpha", "beta", "use_y", "nblk"])
def _gemv_n(A, x, y, W, rows_, cols_, piece, batch, lda, incx, x0, incy, y0, alpha, beta, use_y, nblk,
            RDIV: tl.constexpr, LDIV: tl.constexpr, SPLIT: tl.constexpr, AHEAD: tl.constexpr,
            BR: tl.constexpr, BC: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    # nblk: blocks of a matrix, counted by the host, since the sum in cdiv may not fit in 32 bits
    pid = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    b = pid // nblk
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = tl.multiple_of(tl.load(A + b).to(tl.pointer_type(tl.float64)), 8)
    xb = tl.multiple_of(tl.load(x + b).to(tl.pointer_type(tl.float64)), 8)
    rows = (pid - b * nblk) * BR + tl.arange(0, BR)
    rmask = rows < m
    c0 = s * piece
    c1 = tl.minimum(c0 + piece, cols_)
    acc = tl.zeros((BC, BR), dtype=tl.float64)
    if AHEAD:
        # the next tile is under way while one is added
        cols = c0 + tl.arange(0, BC)
        cmask = cols < c1
        xv = tl.load(xb + (x0 + cols * incx), mask=cmask, other=0.0)
        a = tl.load(ab + cols[:, None] * ld + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
        for c in range(c0, c1, BC):
            cols = c + BC + tl.arange(0, BC)
            cmask = cols < c1
            xn = tl.load(xb + (x0 + cols * incx), mask=cmask, other=0.0)
            an = tl.load(ab + cols[:, None] * ld + rows[None, :], mask=cmask[:, None] & rmask[None, :], other=0.0)
            acc += a * xv[:, None]
            a = an
            xv = xn
    else:
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
        yb = tl.load(y + b).to(tl.pointer_type(tl.float64)) + y0
        py = yb + rows * incy
        old = tl.load(py, mask=rmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=rmask)


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "incx",
                             "x0", "incy", "y0", "alpha", "beta", "use_y", "nblk"])
def _gemv_t(A, x, y, W, rows_, cols_, piece, batch, lda, incx, x0, incy, y0, alpha, beta, use_y, nblk,
            RDIV: tl.constexpr, LDIV: tl.constexpr, INC1: tl.constexpr, SPLIT: tl.constexpr,
            BR: tl.constexpr, BC: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    pid = tl.program_id(0).to(tl.int64)
    s = tl.program_id(1).to(tl.int64)
    b = pid // nblk
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = tl.multiple_of(tl.load(A + b).to(tl.pointer_type(tl.float64)), 8)
    xb = tl.multiple_of(tl.load(x + b).to(tl.pointer_type(tl.float64)), 8)
    cols = (pid - b * nblk) * BC + tl.arange(0, BC)
    cmask = cols < cols_
    ac = ab + cols[:, None] * ld
    r0 = s * piece  # piece is a multiple of BR
    r1 = tl.minimum(r0 + piece, m)
    acc = tl.zeros((BC, BR), dtype=tl.float64)
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
        yb = tl.load(y + b).to(tl.pointer_type(tl.float64)) + y0
        py = yb + cols * incy
        old = tl.load(py, mask=cmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=cmask)


@triton.jit(do_not_specialize=["length", "count", "batch", "incy", "y0", "alpha", "beta", "use_y", "nb"])
def _reduce(W, y, length, count, batch, incy, y0, alpha, beta, use_y, nb, BS: tl.constexpr, BE: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    pid = tl.program_id(0).to(tl.int64)
    b = pid // nb
    e = (pid - b * nb) * BE + tl.arange(0, BE)
    emask = e < length
    acc = tl.zeros((BS, BE), dtype=tl.float64)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        w = W + ((ss * batch + b) * length)[:, None] + e[None, :]
        acc += tl.load(w, mask=(ss < count)[:, None] & emask[None, :], other=0.0)
    total = tl.sum(acc, axis=0)
    yb = tl.load(y + b).to(tl.pointer_type(tl.float64)) + y0
    py = yb + e * incy
    old = tl.load(py, mask=emask & (use_y != 0), other=0.0)
    tl.store(py, al * total + be * old, mask=emask)


def _pow2_divisor(v, limit=16):
    """The largest power of two, up to limit, that divides v."""
    d = 1
    while d < limit and v % (2 * d) == 0:
        d *= 2
    return d


def cublasDgemvBatched(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    plain = trans == "N"
    xlen, ylen = (n, m) if plain else (m, n)
    x0 = (xlen - 1) * -incx if incx < 0 else 0
    y0 = (ylen - 1) * -incy if incy < 0 else 0
    terms = 0 if alpha == 0 else (n if plain else m)  # with alpha = 0 neither A nor x is read
    use_y = int(beta != 0)
    scalars = (_bits(alpha), _bits(beta))
    # tiles of A
    if plain:
        BR = min(128, max(16, triton.next_power_of_2(m)))
        BC = 2048 // BR
        ahead = BR == 128 and terms >= 256
        if ahead:
            BC = 8
        nblk, step = triton.cdiv(m, BR), BC
    else:
        BR = min(256, max(16, triton.next_power_of_2(m)))
        BC = min(2048 // BR, max(4, triton.next_power_of_2(n)))
        if m <= 256 and n >= 64:
            # short columns: many of them, so that the sum over threads is a small part of the work
            BR, BC = 16, 64
        nblk, step = triton.cdiv(n, BC), BR
    blocks = nblk * batchCount
    # pieces of the sum, where the output alone gives too few blocks
    pieces, piece = 1, max(terms, 1)
    if blocks < 264 and terms > 4 * step:
        pieces = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * max(step, 16)))
        piece = triton.cdiv(triton.cdiv(terms, pieces), step) * step
        pieces = triton.cdiv(terms, piece)
    split = pieces > 1
    if not plain and not split:
        piece = triton.cdiv(piece, BR) * BR
    W = torch.empty(pieces * batchCount * ylen, dtype=torch.float64, device=yarray.device) if split else yarray
    rdiv, ldiv = _pow2_divisor(m), _pow2_divisor(lda)
    grid = (blocks, pieces)
    if plain:
        _gemv_n[grid](Aarray, xarray, yarray, W, m, terms, piece, batchCount, lda, incx, x0, incy, y0, *scalars, use_y, nblk,
                      RDIV=rdiv, LDIV=ldiv, SPLIT=split, AHEAD=ahead, BR=BR, BC=BC, num_warps=4)
    else:
        _gemv_t[grid](Aarray, xarray, yarray, W, terms, n, piece, batchCount, lda, incx, x0, incy, y0, *scalars, use_y, nblk,
                      RDIV=rdiv, LDIV=ldiv, INC1=incx == 1, SPLIT=split, BR=BR, BC=BC, num_warps=4)
    if split:
        BS = min(32, triton.next_power_of_2(pieces))
        _reduce[(triton.cdiv(ylen, 32) * batchCount,)](W, yarray, ylen, pieces, batchCount, incy, y0, *scalars, use_y,
                                                       triton.cdiv(ylen, 32), BS=BS, BE=32, num_warps=4)

