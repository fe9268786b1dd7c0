"""cublasDsbmv_v2: y = alpha * A @ x + beta * y in float64, A a symmetric band matrix of which one triangle is stored.

A program owns some rows of y. What is stored of these rows is met by walking over the columns that reach them; what
mirrors it, by walking down the columns of the same numbers: both tiles' last axis runs along memory. Narrow bands go
diagonal by diagonal instead. Nothing outside the band is multiplied, since 0 times an infinite x would be NaN.
"""

import triton
import triton.language as tl


@triton.jit
def _finish(y_ptr, i, total, n, alpha, beta, incy, y_first, read_y):
    """y of rows i = alpha * total + beta * y."""
    at = y_ptr + y_first + i * incy
    old = tl.load(at, mask=(i < n) & (read_y != 0), other=0.0)
    tl.store(at, alpha * total + beta * old, mask=i < n)


@triton.jit(do_not_specialize=["n", "k", "lda", "incx", "x_first", "incy", "y_first", "read_y"])
def _narrow(
    a_ptr, x_ptr, y_ptr, n, k, lda, incx, x_first, incy, y_first, alpha: tl.float64, beta: tl.float64, read_y,
    LOWER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lda = lda.to(tl.int64)
    total = tl.zeros((ROWS,), dtype=tl.float64)
    for off in range(k + 1):
        # Row i has one element of the diagonal in column ``stored``; its mirror stands in column i, row ``mirrored``.
        if LOWER:
            stored, mirrored, band = i - off, i + off, off
        else:
            stored, mirrored, band = i + off, i - off, k - off
        inside = (i < n) & (stored >= 0) & (stored < n)
        a = tl.load(a_ptr + band + stored * lda, mask=inside, other=0.0)
        total += a * tl.load(x_ptr + x_first + stored * incx, mask=inside, other=0.0)
        inside = (i < n) & (mirrored >= 0) & (mirrored < n) & (off > 0)
        a = tl.load(a_ptr + band + i * lda, mask=inside, other=0.0)
        total += a * tl.load(x_ptr + x_first + mirrored * incx, mask=inside, other=0.0)
    _finish(y_ptr, i, total, n, alpha, beta, incy, y_first, read_y)


@triton.jit(do_not_specialize=["n", "k", "lda", "incx", "x_first", "incy", "y_first", "read_y"])
def _wide(
    a_ptr, x_ptr, y_ptr, n, k, lda, incx, x_first, incy, y_first, alpha: tl.float64, beta: tl.float64, read_y,
    LOWER: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    lda = lda.to(tl.int64)
    top = tl.program_id(0).to(tl.int64) * ROWS
    i = top + tl.arange(0, ROWS)
    bottom = tl.minimum(top + ROWS, n)
    # The columns j of what is stored: 0 <= i - j <= k, or 0 <= j - i <= k of an upper triangle.
    begin = tl.maximum(top - k, 0) if LOWER else top
    end = bottom if LOWER else tl.minimum(bottom + k, n)
    stored = tl.zeros((STEP, ROWS), dtype=tl.float64)
    for start in range(begin, end, STEP):
        j = start + tl.arange(0, STEP)
        off = i[None, :] - j[:, None] if LOWER else j[:, None] - i[None, :]
        band = off if LOWER else k - off
        inside = (off >= 0) & (off <= k) & (j < end)[:, None] & (i < n)[None, :]
        a = tl.load(a_ptr + j[:, None] * lda + band, mask=inside, other=0.0)
        x = tl.load(x_ptr + x_first + j * incx, mask=j < end, other=0.0)
        stored += tl.where(inside, a * x[:, None], 0.0)
    # The rows r that columns i hold on the other side: 0 < r - i <= k, or 0 < i - r <= k.
    begin = top + 1 if LOWER else tl.maximum(top - k, 0)
    end = tl.minimum(bottom + k, n) if LOWER else bottom
    mirrored = tl.zeros((ROWS, STEP), dtype=tl.float64)
    for start in range(begin, end, STEP):
        r = start + tl.arange(0, STEP)
        off = r[None, :] - i[:, None] if LOWER else i[:, None] - r[None, :]
        band = off if LOWER else k - off
        inside = (off > 0) & (off <= k) & (r < end)[None, :] & (i < n)[:, None]
        a = tl.load(a_ptr + i[:, None] * lda + band, mask=inside, other=0.0)
        x = tl.load(x_ptr + x_first + r * incx, mask=r < end, other=0.0)
        mirrored += tl.where(inside, a * x[None, :], 0.0)
    _finish(y_ptr, i, tl.sum(stored, axis=0) + tl.sum(mirrored, axis=1), n, alpha, beta, incy, y_first, read_y)


@triton.jit(do_not_specialize=["n", "incy", "y_first", "read_y"])
def _scale(y_ptr, n, incy, y_first, beta: tl.float64, read_y, ROWS: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    old = tl.load(y_ptr + y_first + i * incy, mask=(i < n) & (read_y != 0), other=0.0)
    tl.store(y_ptr + y_first + i * incy, beta * old, mask=i < n)


def cublasDsbmv_v2(uplo, n, k, alpha, A, lda, x, incx, beta, y, incy):
    """A: 1-D storage of the band, whose diagonals are its rows; x, y: storage, walked from the end by a negative inc.

    With alpha 0 neither A nor x is read, with beta 0 y is not, not even their NaNs.
    """
    if n <= 0:
        return
    x_first = (1 - n) * incx if incx < 0 else 0
    y_first = (1 - n) * incy if incy < 0 else 0
    alpha, beta, read_y, lower = float(alpha), float(beta), int(beta != 0), uplo == "L"
    if alpha == 0:
        _scale[(triton.cdiv(n, 512),)](y, n, incy, y_first, beta, read_y, ROWS=512, num_warps=4)
        return
    arguments = (A, x, y, n, k, lda, incx, x_first, incy, y_first, alpha, beta, read_y)
    if k <= 8:
        _narrow[(triton.cdiv(n, 256),)](*arguments, LOWER=lower, ROWS=256, num_warps=4)
    else:
        _wide[(triton.cdiv(n, 32),)](*arguments, LOWER=lower, ROWS=32, STEP=64, num_warps=4)
