"""cublasDgemvBatched: y = alpha * op(A) @ x + beta * y for each matrix of a batch behind arrays of pointers, float64.

A tile's last axis runs down a column of A, along memory: a program owns rows and walks along the columns, transposed
it owns columns and walks down the rows. Where that gives too few programs, sums are cut into parts, which a second
kernel adds up. The divisors are powers of two that divide the sizes, from which the compiler sees how wide it may
load.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _behind(addresses, batch):
    """Addresses are multiples of 8, nothing more."""
    return tl.multiple_of(tl.load(addresses + batch).to(tl.pointer_type(tl.float64)), 8)


@triton.jit
def _put(y_ptr, batch, i, length, total, incy, y_first, alpha, beta, read_y):
    """y = alpha * total + beta * y."""
    at = _behind(y_ptr, batch) + y_first + i * incy
    old = tl.load(at, mask=(i < length) & (read_y != 0), other=0.0)
    tl.store(at, alpha * total + beta * old, mask=i < length)


@triton.jit
def _load(a_ptr, x_ptr, row, rows, column, end, lda, incx, x_first):
    """Columns (before ``end``) of these rows, and x."""
    x = tl.load(x_ptr + (x_first + column * incx), mask=column < end, other=0.0)
    inside = (column < end)[:, None] & (row < rows)[None, :]
    return tl.load(a_ptr + column[:, None] * lda + row[None, :], mask=inside, other=0.0), x


@triton.jit(
    do_not_specialize=[
        "length", "terms", "part", "batches", "blocks", "lda", "incx", "x_first", "incy", "y_first", "read_y",
    ]
)  # fmt: skip
def _gemv(
    a_ptr, x_ptr, y_ptr, sum_ptr, length, terms, part, batches, blocks, lda, incx, x_first,
    incy, y_first, alpha: tl.float64, beta: tl.float64, read_y,
    PLAIN: tl.constexpr, AHEAD: tl.constexpr, DENSE: tl.constexpr, SPLIT: tl.constexpr,
    ROW_DIVISOR: tl.constexpr, DIVISOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Elements of y of one matrix, or SPLIT: their sums over ``part`` terms, to sum_ptr. DENSE: incx is 1."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    block = (tl.program_id(0) % blocks).to(tl.int64)
    lda = tl.multiple_of(lda.to(tl.int64), DIVISOR)
    a_ptr, x_ptr = _behind(a_ptr, batch), _behind(x_ptr, batch)
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, terms)
    sums = tl.zeros((COLUMNS, ROWS), dtype=tl.float64)
    if PLAIN:
        length = tl.multiple_of(length.to(tl.int64), ROW_DIVISOR)
        i = block * ROWS + tl.arange(0, ROWS)
        step = tl.arange(0, COLUMNS)
        if AHEAD:
            # The next tile is under way while one is added.
            a, x = _load(a_ptr, x_ptr, i, length, begin + step, end, lda, incx, x_first)
            for start in range(begin, end, COLUMNS):
                next_a, next_x = _load(a_ptr, x_ptr, i, length, start + COLUMNS + step, end, lda, incx, x_first)
                sums += a * x[:, None]
                a, x = next_a, next_x
        else:
            for start in range(begin, end, COLUMNS):
                a, x = _load(a_ptr, x_ptr, i, length, start + step, end, lda, incx, x_first)
                sums += a * x[:, None]
        total = tl.sum(sums, axis=0)
    else:
        terms = tl.multiple_of(terms.to(tl.int64), ROW_DIVISOR)
        i = block * COLUMNS + tl.arange(0, COLUMNS)
        a_ptrs = a_ptr + i[:, None] * lda
        for start in range(begin, end, ROWS):
            row = tl.multiple_of(start, ROWS) + tl.arange(0, ROWS)
            x = tl.load(x_ptr + row if DENSE else x_ptr + x_first + row * incx, mask=row < terms, other=0.0)
            inside = (i < length)[:, None] & (row < terms)[None, :]
            sums += tl.load(a_ptrs + row[None, :], mask=inside, other=0.0) * x[None, :]
        total = tl.sum(sums, axis=1)
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * batches + batch) * length + i
        tl.store(at, total, mask=i < length)
    else:
        _put(y_ptr, batch, i, length, total, incy, y_first, alpha, beta, read_y)


@triton.jit(do_not_specialize=["length", "count", "batches", "blocks", "incy", "y_first", "read_y"])
def _finish(
    sum_ptr, y_ptr, length, count, batches, blocks, incy, y_first, alpha: tl.float64, beta: tl.float64, read_y,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float64)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + ((part * batches + batch) * length)[:, None] + i[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & (i < length)[None, :], other=0.0)
    _put(y_ptr, batch, i, length, tl.sum(total, axis=0), incy, y_first, alpha, beta, read_y)


def _tile(plain, m, n):
    """Rows and columns of a tile of A, and whether tiles are loaded ahead."""
    if plain:
        rows = min(128, max(16, triton.next_power_of_2(m)))
        return (128, 8, True) if rows == 128 and n >= 256 else (rows, 2048 // rows, False)
    if m <= 256 and n >= 64:
        # Short columns: many of them, so that the sum over threads is a small part of the work.
        return 16, 64, False
    rows = min(256, max(16, triton.next_power_of_2(m)))
    return rows, min(2048 // rows, max(4, triton.next_power_of_2(n))), False


def _parts(terms, step, blocks):
    """How many parts the sums are cut into, and their length: parts only where y alone gives too few blocks."""
    if blocks >= 264 or terms <= 4 * step:
        return 1, triton.cdiv(max(terms, 1), step) * step
    count = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * max(step, 16)))
    part = triton.cdiv(triton.cdiv(terms, count), step) * step
    return triton.cdiv(terms, part), part


def cublasDgemvBatched(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    """Aarray, xarray, yarray: addresses of 1-D float64 storage, element (i, j) of A at i + j * lda.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    plain = trans == "N"
    length, terms = (m, n) if plain else (n, m)
    x_first = (1 - terms) * incx if incx < 0 else 0
    y_first = (1 - length) * incy if incy < 0 else 0
    rows, columns, ahead = _tile(plain, m, n)
    wide, step = (rows, columns) if plain else (columns, rows)
    blocks = triton.cdiv(length, wide)
    count, part = _parts(terms if alpha != 0 else 0, step, blocks * batchCount)
    sums = torch.empty(count * batchCount * length, dtype=torch.float64, device=yarray.device) if count > 1 else yarray
    ends = (incy, y_first, float(alpha), float(beta), int(beta != 0))
    _gemv[(blocks * batchCount, count)](
        Aarray, xarray, yarray, sums, length, terms if alpha != 0 else 0, part, batchCount, blocks, lda, incx, x_first,
        *ends, PLAIN=plain, AHEAD=ahead and alpha != 0, DENSE=incx == 1, SPLIT=count > 1,
        ROW_DIVISOR=min(16, m & -m), DIVISOR=min(16, lda & -lda), ROWS=rows, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
    if count > 1:
        blocks = triton.cdiv(length, 32)
        _finish[(blocks * batchCount,)](
            sums, yarray, length, count, batchCount, blocks, *ends,
            PARTS=min(32, triton.next_power_of_2(count)), BLOCK=32, num_warps=4,
        )  # fmt: skip
