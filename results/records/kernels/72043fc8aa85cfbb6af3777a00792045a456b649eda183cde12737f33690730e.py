"""cublasDgemv_v2: y = alpha op(A) x + beta y.

The last axis of a tile of A runs down a column, along memory. For 'N' a block owns BR rows and walks along the columns,
for 'T' it owns BC columns and walks down the rows. Where that gives too few blocks, the sum is cut into pieces that go to
scratch memory and are added up by a second kernel, always in the same order.

That is the general path. The usual calls (x without gaps) take tiles of three axes: one that a thread walks alone, so that
its sum costs nothing, one over the groups of threads, and one along memory; what is left is summed once at the end.
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
                             "x0", "incy", "y0", "alpha", "beta", "use_y"])
def _gemv_n(A, x, y, W, rows_, cols_, piece, batch, lda, incx, x0, incy, y0, alpha, beta, use_y,
            RDIV: tl.constexpr, LDIV: tl.constexpr, SPLIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    nrb = tl.cdiv(rows_, BR)
    pid = tl.program_id(0)
    s = tl.program_id(1).to(tl.int64)
    b = (pid // nrb).to(tl.int64)
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = A
    xb = x
    rows = (pid % nrb).to(tl.int64) * BR + tl.arange(0, BR)
    rmask = rows < m
    c0 = s * piece
    c1 = tl.minimum(c0 + piece, cols_)
    acc = tl.zeros((BC, BR), dtype=tl.float64)
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
        yb = y + y0
        py = yb + rows * incy
        old = tl.load(py, mask=rmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=rmask)


@triton.jit(do_not_specialize=["rows_", "cols_", "piece", "batch", "lda", "incx",
                             "x0", "incy", "y0", "alpha", "beta", "use_y"])
def _gemv_t(A, x, y, W, rows_, cols_, piece, batch, lda, incx, x0, incy, y0, alpha, beta, use_y,
            RDIV: tl.constexpr, LDIV: tl.constexpr, INC1: tl.constexpr, SPLIT: tl.constexpr,
            BR: tl.constexpr, BC: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    ncb = tl.cdiv(cols_, BC)
    pid = tl.program_id(0)
    s = tl.program_id(1).to(tl.int64)
    b = (pid // ncb).to(tl.int64)
    m = tl.multiple_of(rows_.to(tl.int64), RDIV)
    ld = tl.multiple_of(lda.to(tl.int64), LDIV)
    ab = A
    xb = x
    cols = (pid % ncb).to(tl.int64) * BC + tl.arange(0, BC)
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
        yb = y + y0
        py = yb + cols * incy
        old = tl.load(py, mask=cmask & (use_y != 0), other=0.0)
        tl.store(py, al * total + be * old, mask=cmask)


@triton.jit(do_not_specialize=["length", "count", "batch", "incy", "y0", "alpha", "beta", "use_y"])
def _reduce(W, y, length, count, batch, incy, y0, alpha, beta, use_y, BS: tl.constexpr, BE: tl.constexpr):
    al = _f64(alpha)
    be = _f64(beta)
    nb = tl.cdiv(length, BE)
    pid = tl.program_id(0)
    b = (pid // nb).to(tl.int64)
    e = (pid % nb).to(tl.int64) * BE + tl.arange(0, BE)
    emask = e < length
    acc = tl.zeros((BS, BE), dtype=tl.float64)
    for s in range(0, count, BS):
        ss = s + tl.arange(0, BS).to(tl.int64)
        w = W + ((ss * batch + b) * length)[:, None] + e[None, :]
        acc += tl.load(w, mask=(ss < count)[:, None] & emask[None, :], other=0.0)
    total = tl.sum(acc, axis=0)
    yb = y + y0
    py = yb + e * incy
    old = tl.load(py, mask=emask & (use_y != 0), other=0.0)
    tl.store(py, al * total + be * old, mask=emask)


def _pow2_divisor(v, limit=16):
    """The largest power of two, up to limit, that divides v."""
    d = 1
    while d < limit and v % (2 * d) == 0:
        d *= 2
    return d


def _general(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m <= 0 or n <= 0:
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
        blocks, step = triton.cdiv(m, BR), BC
    else:
        BR = min(256, max(16, triton.next_power_of_2(m)))
        BC = min(2048 // BR, max(4, triton.next_power_of_2(n)))
        blocks, step = triton.cdiv(n, BC), BR
    # pieces of the sum, where the output alone gives too few blocks
    pieces, piece = 1, max(terms, 1)
    if blocks < 264 and terms > 4 * step:
        pieces = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * step))
        piece = triton.cdiv(triton.cdiv(terms, pieces), step) * step
        pieces = triton.cdiv(terms, piece)
    split = pieces > 1
    if not plain and not split:
        piece = triton.cdiv(piece, BR) * BR
    W = torch.empty(pieces * ylen, dtype=torch.float64, device=y.device) if split else y
    rdiv, ldiv = _pow2_divisor(m), _pow2_divisor(lda)
    grid = (blocks, pieces)
    if plain:
        _gemv_n[grid](A, x, y, W, m, terms, piece, 1, lda, incx, x0, incy, y0, *scalars, use_y,
                      RDIV=rdiv, LDIV=ldiv, SPLIT=split, BR=BR, BC=BC, num_warps=4)
    else:
        _gemv_t[grid](A, x, y, W, terms, n, piece, 1, lda, incx, x0, incy, y0, *scalars, use_y,
                      RDIV=rdiv, LDIV=ldiv, INC1=incx == 1, SPLIT=split, BR=BR, BC=BC, num_warps=4)
    if split:
        BS = min(32, triton.next_power_of_2(pieces))
        _reduce[(triton.cdiv(ylen, 32),)](W, y, ylen, pieces, 1, incy, y0, *scalars, use_y,
                                                       BS=BS, BE=32, num_warps=4)


@triton.jit
def _dot_n(base, xb, ld, rleft, count, EVEN: tl.constexpr, U: tl.constexpr, G: tl.constexpr, BR: tl.constexpr):
    """The sums of BR rows over count columns: U columns one after another in a thread, G beside one another."""
    r = tl.arange(0, BR)
    j = tl.arange(0, U)[:, None] * G + tl.arange(0, G)[None, :]
    off = j[:, :, None] * ld + r[None, None, :]
    rm = (r < rleft)[None, None, :]
    acc = tl.zeros((G, BR), dtype=tl.float64)
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
            acc += tl.sum(a * xv[:, :, None], axis=0)
            base += ld.to(tl.int64) * (U * G)
            xb += U * G
            if EVEN:
                a = tl.load(base + off, eviction_policy="evict_first")
                xv = tl.load(xb + j)
            else:
                a = tl.load(base + off, mask=rm, other=0, eviction_policy="evict_first")
                xv = tl.load(xb + j)
        acc += tl.sum(a * xv[:, :, None], axis=0)
        base += ld.to(tl.int64) * (U * G)
        xb += U * G
    left = count - full * (U * G)
    if left > 0:
        jm = j < left
        a = tl.load(base + off, mask=jm[:, :, None] & rm, other=0, eviction_policy="evict_first")
        xv = tl.load(xb + j, mask=jm, other=0)
        acc += tl.sum(a * xv[:, :, None], axis=0)
    return tl.sum(acc, axis=0)


@triton.jit
def _dot_t(base, xb, ld, cleft, count, EVEN: tl.constexpr, U: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    """The sums of P columns over count rows: U pieces of BR rows one after another in a thread."""
    p = tl.arange(0, P)
    i = tl.arange(0, U)[:, None] * BR + tl.arange(0, BR)[None, :]
    off = (p * ld)[None, :, None] + i[:, None, :]
    pm = (p < cleft)[None, :, None]
    acc = tl.zeros((P, BR), dtype=tl.float64)
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
            acc += tl.sum(a * xv[:, None, :], axis=0)
            base += U * BR
            xb += U * BR
            if EVEN:
                a = tl.load(base + off, eviction_policy="evict_first")
                xv = tl.load(xb + i)
            else:
                a = tl.load(base + off, mask=pm, other=0, eviction_policy="evict_first")
                xv = tl.load(xb + i)
        acc += tl.sum(a * xv[:, None, :], axis=0)
        base += U * BR
        xb += U * BR
    left = count - full * (U * BR)
    if left > 0:
        im_ = i < left
        a = tl.load(base + off, mask=im_[:, None, :] & pm, other=0, eviction_policy="evict_first")
        xv = tl.load(xb + i, mask=im_, other=0)
        acc += tl.sum(a * xv[:, None, :], axis=0)
    return tl.sum(acc, axis=1)


@triton.jit
def _fast_put(py, total, mask, alpha, beta, use_y):
    out = total * _f64(alpha)
    if use_y != 0:
        out += tl.load(py, mask=mask, other=0.0) * _f64(beta)
    tl.store(py, out, mask=mask)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "pieces", "ldq", "incy", "y0", "alpha", "beta", "use_y"])
def _fast_n(A, x, y, W, nblk, rows, cols, piece, pieces, ldq, incy, y0, alpha, beta, use_y,
            LDIV: tl.constexpr, EVEN: tl.constexpr, SPLIT: tl.constexpr, U: tl.constexpr, G: tl.constexpr, BR: tl.constexpr):
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
    total = _dot_n(A + start, x + xs, ld, rleft, count, EVEN, U, G, BR)
    e = r0 + tl.arange(0, BR)
    length = rows
    emask = e < length
    e = e.to(tl.int64)
    if SPLIT:
        pw = W + ((b * length + e) * pieces + s)
        tl.store(pw, total, mask=emask)
    else:
        py = y + y0.to(tl.int64) + e * incy
        _fast_put(py, total, emask, alpha, beta, use_y)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "pieces", "ldq", "incy", "y0", "alpha", "beta", "use_y"])
def _fast_t(A, x, y, W, nblk, rows, cols, piece, pieces, ldq, incy, y0, alpha, beta, use_y,
            LDIV: tl.constexpr, EVEN: tl.constexpr, SPLIT: tl.constexpr, U: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
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
    total = _dot_t(A + start, x + xs, ld, cleft, count, EVEN, U, P, BR)
    e = c0 + tl.arange(0, P)
    length = cols
    emask = e < length
    e = e.to(tl.int64)
    if SPLIT:
        pw = W + ((b * length + e) * pieces + s)
        tl.store(pw, total, mask=emask)
    else:
        py = y + y0.to(tl.int64) + e * incy
        _fast_put(py, total, emask, alpha, beta, use_y)


@triton.jit(do_not_specialize=["nblk", "length", "pieces", "incy", "y0", "alpha", "beta", "use_y"])
def _fast_reduce(W, y, nblk, length, pieces, incy, y0, alpha, beta, use_y, BE: tl.constexpr, BS: tl.constexpr):
    pid = tl.program_id(0)
    b = (pid // nblk).to(tl.int64)
    e = (pid % nblk) * BE + tl.arange(0, BE)
    emask = e < length
    e = e.to(tl.int64)
    s = tl.arange(0, BS)

    pw = W + (((b * length + e) * pieces)[:, None] + s[None, :])
    mask = emask[:, None] & (s < pieces)[None, :]
    py = y + y0.to(tl.int64) + e * incy
    total = tl.sum(tl.load(pw, mask=mask, other=0.0), axis=1)
    _fast_put(py, total, emask, alpha, beta, use_y)


def _fast(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """The usual calls: increments of x of 1, a tile of A within 32-bit offsets. False where the call is none of them."""
    plain = trans == "N"
    batch = 1
    if alpha == 0 or incx != 1 or m < 16 or n < 8 or m > 2 ** 29:
        return False
    rows = m * 1
    size = rows * n * batch * 8
    pieces, piece = 1, 0
    if plain:
        top = triton.next_power_of_2(rows)
        BR, warps, U = 0, 4, 8
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
    scalars = (_bits(alpha), _bits(beta))
    Av, xv, yv = A, x, y
    ldiv = _pow2_divisor(lda * 1, 4)
    W = torch.empty(pieces * batch * ylen, dtype=torch.float64, device=y.device) if split else yv
    grid = (blocks, pieces)
    if plain:
        _fast_n[grid](Av, xv, yv, W, nblk, rows, n, piece, pieces, lda * 1 // ldiv, incy, y0, *scalars, use_y,
                      LDIV=ldiv, EVEN=even, SPLIT=split, U=U, G=G, BR=BR, num_warps=warps)
    else:
        _fast_t[grid](Av, xv, yv, W, nblk, rows, n, piece, pieces, lda * 1 // ldiv, incy, y0, *scalars, use_y,
                      LDIV=ldiv, EVEN=even, SPLIT=split, U=U, P=P, BR=BR, num_warps=warps)
    if split:
        BS = triton.next_power_of_2(pieces)
        BE = max(1, 1024 // BS)
        nblk = triton.cdiv(ylen, BE)
        _fast_reduce[(nblk * batch,)](W, yv, nblk, ylen, pieces, incy, y0, *scalars, use_y,
                                      BE=BE, BS=BS, num_warps=4)
    return True


@triton.jit
def _lean_add(py, total, alpha):
    tl.atomic_add(py, total * _f64(alpha), sem="relaxed")


@triton.jit
def _cols(base, xb, off, j, U: tl.constexpr):
    """The sums over U columns."""
    a = tl.load(base + off, eviction_policy="evict_first")
    xv = tl.load(xb + j)
    return tl.sum(a * xv[:, None], axis=0)


@triton.jit
def _walk_n(base, xb, ld, count, ONE: tl.constexpr, NS: tl.constexpr, U: tl.constexpr, BR: tl.constexpr):
    j = tl.arange(0, U)
    off = j[:, None] * ld + tl.arange(0, BR)[None, :]
    if ONE:
        total = _cols(base, xb, off, j, U)
    else:
        total = tl.zeros((BR,), dtype=tl.float64)
        for _ in tl.range(0, count // U, num_stages=NS):
            total += _cols(base, xb, off, j, U)
            base += ld.to(tl.int64) * U
            xb += U
    return total


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "batch", "ldq", "incy", "y0", "alpha", "beta", "use_y"])
def _lean_n(A, x, y, W, nblk, rows, cols, piece, batch, ldq, incy, y0, alpha, beta, use_y,
            LDIV: tl.constexpr, MODE: tl.constexpr, ONE: tl.constexpr, NS: tl.constexpr, U: tl.constexpr, BR: tl.constexpr):
    """BR rows, walking along the columns U at a time; everything divides evenly, so nothing is masked."""
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    r0 = (pid % nblk) * BR
    c0 = s * piece
    count = tl.minimum(cols - c0, piece)
    base = A + (c0.to(tl.int64) * ld + r0)
    xb = x + c0
    total = _walk_n(base, xb, ld, count, ONE, NS, U, BR)
    e = r0 + tl.arange(0, BR)
    e64 = e.to(tl.int64)
    if MODE == 1:
        pw = W + ((s.to(tl.int64) * batch + b) * rows + e64)
        tl.store(pw, total)
    else:
        py = y + y0.to(tl.int64) + e64 * incy
        if MODE == 2:
            _lean_add(py, total, alpha)
        else:
            _fast_put(py, total, e >= 0, alpha, beta, use_y)


@triton.jit
def _walk_t(base, xb, ld, count, P: tl.constexpr, BR: tl.constexpr):
    r = tl.arange(0, BR)
    off = (tl.arange(0, P) * ld)[:, None] + r[None, :]
    acc = tl.zeros((P, BR), dtype=tl.float64)
    for _ in tl.range(0, count // BR, num_stages=4):
        a0 = tl.load(base + off, eviction_policy="evict_first")
        x0 = tl.load(xb + r)
        acc += a0 * x0[None, :]
        base += BR
        xb += BR
    return tl.sum(acc, axis=1)


@triton.jit(do_not_specialize=["nblk", "rows", "cols", "piece", "batch", "ldq", "incy", "y0", "alpha", "beta", "use_y"])
def _lean_t(A, x, y, W, nblk, rows, cols, piece, batch, ldq, incy, y0, alpha, beta, use_y,
            LDIV: tl.constexpr, MODE: tl.constexpr, P: tl.constexpr, BR: tl.constexpr):
    """P columns, walking down the rows BR at a time; everything divides evenly, so nothing is masked."""
    pid = tl.program_id(0)
    s = tl.program_id(1)
    b = (pid // nblk).to(tl.int64)
    ld = ldq * LDIV
    c0 = (pid % nblk) * P
    r0 = s * piece * BR  # here piece counts rows in units of BR
    count = tl.minimum(rows - r0, piece * BR)
    base = A + (c0.to(tl.int64) * ld + r0)
    xb = x + r0
    total = _walk_t(base, xb, ld, count, P, BR)
    e = c0 + tl.arange(0, P)
    e64 = e.to(tl.int64)
    if MODE == 1:
        pw = W + ((s.to(tl.int64) * batch + b) * cols + e64)
        tl.store(pw, total)
    else:
        py = y + y0.to(tl.int64) + e64 * incy
        if MODE == 2:
            _lean_add(py, total, alpha)
        else:
            _fast_put(py, total, e >= 0, alpha, beta, use_y)


@triton.jit(do_not_specialize=["nblk", "length", "pieces", "batch", "incy", "y0", "alpha", "beta", "use_y"])
def _lean_reduce(W, y, nblk, length, pieces, batch, incy, y0, alpha, beta, use_y, BE: tl.constexpr, BS: tl.constexpr):
    pid = tl.program_id(0)
    b = (pid // nblk).to(tl.int64)
    e = (pid % nblk) * BE + tl.arange(0, BE)
    emask = e < length
    e = e.to(tl.int64)
    s = tl.arange(0, BS).to(tl.int64)
    pw = W + ((s * batch + b)[:, None] * length + e[None, :])
    mask = emask[None, :] & (s < pieces)[:, None]
    py = y + y0.to(tl.int64) + e * incy
    total = tl.sum(tl.load(pw, mask=mask, other=0.0), axis=0)
    _fast_put(py, total, emask, alpha, beta, use_y)


def _lean(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """Where tiles cover the matrix without remainder: no masks, little code. False where the call is not like that."""
    plain = trans == "N"
    batch = 1
    if alpha == 0 or incx != 1 or m > 2 ** 29 or n > 2 ** 29:
        return False
    rows = m * 1
    pieces, P, one = 1, 1, False
    if plain:
        if batch == 1 and rows % 8 == 0 and rows <= 1600 and n in (512, 1024):
            U, BR, warps = n, 8, 16
        elif rows % 64 == 0 and rows <= 128 and n % 16 == 0 and batch * rows >= 64 * 1056:
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
        BR, P, warps = 256, 8, 4
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
    scalars = (_bits(alpha), _bits(beta))
    Av, xv, yv = A, x, y
    ldiv = _pow2_divisor(lda * 1, 4)
    W = torch.empty(pieces * batch * ylen, dtype=torch.float64, device=y.device) if mode == 1 else yv
    grid = (nblk * batch, pieces)
    if plain:
        _lean_n[grid](Av, xv, yv, W, nblk, rows, n, piece, batch, lda * 1 // ldiv, incy, y0, *scalars, use_y,
                      LDIV=ldiv, MODE=mode, ONE=one, NS=4, U=U, BR=BR, num_warps=warps)
    else:
        _lean_t[grid](Av, xv, yv, W, nblk, rows, n, piece, batch, lda * 1 // ldiv, incy, y0, *scalars, use_y,
                      LDIV=ldiv, MODE=mode, P=P, BR=BR, num_warps=warps)
    if mode == 1:
        BS = triton.next_power_of_2(pieces)
        BE = max(1, 2048 // BS)
        BE = min(BE, 32)
        nblk = triton.cdiv(ylen, BE)
        _lean_reduce[(nblk * batch,)](W, yv, nblk, ylen, pieces, batch, incy, y0, *scalars, use_y,
                                      BE=BE, BS=BS, num_warps=4)
    return True


def cublasDgemv_v2(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m <= 0 or n <= 0:
        return
    if _lean(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
        return
    if not _fast(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
        _general(trans, m, n, alpha, A, lda, x, incx, beta, y, incy)

