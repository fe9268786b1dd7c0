"""cublasSgemvBatched: y = alpha * op(A) @ x + beta * y for each matrix of a batch behind arrays of pointers, float32.

A tile's last axis runs down a column of A, along memory: a program owns rows and walks along the columns, transposed
it owns columns and walks down the rows. Where that gives too few programs, sums are cut into parts, which a second
kernel adds up. The divisors are powers of two that divide the sizes, from which the compiler sees how wide it may
load.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_columns(
    a_ptr, x_ptr, row, rows, begin, end, lda, incx, x_first,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sums over columns begin to end of these rows."""
    total = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(begin, end, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        x = tl.load(x_ptr + x_first + column * incx, mask=column < end, other=0.0)
        inside = (column < end)[:, None] & (row < rows)[None, :]
        a = tl.load(a_ptr + column[:, None] * lda + row[None, :], mask=inside, other=0.0)
        total += a * x[:, None]
    return tl.sum(total, axis=0)


@triton.jit
def _add_rows(
    a_ptr, x_ptr, column, columns, rows, begin, end, lda, incx, x_first,
    DENSE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sums over rows begin to end of these columns; DENSE: incx is 1."""
    at = a_ptr + column[:, None] * lda
    total = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(begin, end, ROWS):
        row = tl.multiple_of(start, ROWS) + tl.arange(0, ROWS)
        x_at = x_ptr + row if DENSE else x_ptr + x_first + row * incx
        x = tl.load(x_at, mask=row < rows, other=0.0)
        inside = (column < columns)[:, None] & (row < rows)[None, :]
        total += tl.load(at + row[None, :], mask=inside, other=0.0) * x[None, :]
    return tl.sum(total, axis=1)


@triton.jit(
    do_not_specialize=[
        "rows", "columns", "part", "batches", "lda", "incx", "x_first", "incy", "y_first", "read_y",
    ]
)  # fmt: skip
def _gemv(
    a_ptr, x_ptr, y_ptr, sum_ptr, rows, columns, part, batches, lda, incx, x_first,
    incy, y_first, alpha, beta, read_y,
    ROW_DIVISOR: tl.constexpr, DIVISOR: tl.constexpr,
    SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """ROWS elements of y = alpha * A @ x + beta * y; SPLIT: sums over ``part`` columns go to sum_ptr."""
    blocks = ((rows.to(tl.int64) + (ROWS - 1)) // ROWS).to(tl.int32)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    rows = tl.multiple_of(rows.to(tl.int64), ROW_DIVISOR)
    lda = tl.multiple_of(lda.to(tl.int64), DIVISOR)
    address = tl.load(a_ptr + batch)
    x_ptr = tl.load(x_ptr + batch).to(tl.pointer_type(tl.float32))
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, columns)
    if DIVISOR >= 2 and address % 16 == 0:
        # Only here are loads of several elements at a time possible.
        total = _add_columns(
            tl.multiple_of(address.to(tl.pointer_type(tl.float32)), 16),
            x_ptr,
            row,
            rows,
            begin,
            end,
            lda,
            incx,
            x_first,
            ROWS,
            COLUMNS,
        )
    else:
        total = _add_columns(
            address.to(tl.pointer_type(tl.float32)), x_ptr, row, rows, begin, end, lda, incx, x_first, ROWS, COLUMNS
        )
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * batches + batch) * rows + row
        tl.store(at, total, mask=row < rows)
    else:
        y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float32))
        at = y_ptr + y_first + row * incy
        old = tl.load(at, mask=(row < rows) & (read_y != 0), other=0.0)
        tl.store(at, alpha * total + beta * old, mask=row < rows)


@triton.jit(
    do_not_specialize=[
        "rows", "columns", "part", "batches", "lda", "incx", "x_first", "incy", "y_first", "read_y",
    ]
)  # fmt: skip
def _gemv_transposed(
    a_ptr, x_ptr, y_ptr, sum_ptr, rows, columns, part, batches, lda, incx, x_first,
    incy, y_first, alpha, beta, read_y,
    ROW_DIVISOR: tl.constexpr, DIVISOR: tl.constexpr, DENSE: tl.constexpr,
    SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS elements of y = alpha * A^T @ x + beta * y; SPLIT: sums over ``part`` rows go to sum_ptr."""
    blocks = ((columns.to(tl.int64) + (COLUMNS - 1)) // COLUMNS).to(tl.int32)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.multiple_of(rows.to(tl.int64), ROW_DIVISOR)
    lda = tl.multiple_of(lda.to(tl.int64), DIVISOR)
    address = tl.load(a_ptr + batch)
    x_ptr = tl.load(x_ptr + batch).to(tl.pointer_type(tl.float32))
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, rows)
    if DIVISOR >= 4 and address % 16 == 0:
        # Only here are loads of several elements at a time possible.
        total = _add_rows(
            tl.multiple_of(address.to(tl.pointer_type(tl.float32)), 16),
            x_ptr,
            column,
            columns,
            rows,
            begin,
            end,
            lda,
            incx,
            x_first,
            DENSE,
            ROWS,
            COLUMNS,
        )
    else:
        total = _add_rows(
            address.to(tl.pointer_type(tl.float32)),
            x_ptr,
            column,
            columns,
            rows,
            begin,
            end,
            lda,
            incx,
            x_first,
            DENSE,
            ROWS,
            COLUMNS,
        )
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * batches + batch) * columns + column
        tl.store(at, total, mask=column < columns)
    else:
        y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float32))
        at = y_ptr + y_first + column * incy
        old = tl.load(at, mask=(column < columns) & (read_y != 0), other=0.0)
        tl.store(at, alpha * total + beta * old, mask=column < columns)


@triton.jit(do_not_specialize=["length", "count", "batches", "incy", "y_first", "read_y"])
def _finish(
    sum_ptr, y_ptr, length, count, batches, incy, y_first, alpha, beta, read_y,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    blocks = tl.cdiv(length, BLOCK)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + ((part * batches + batch) * length)[:, None] + i[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & (i < length)[None, :], other=0.0)
    y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float32))
    at = y_ptr + y_first + i * incy
    old = tl.load(at, mask=(i < length) & (read_y != 0), other=0.0)
    tl.store(at, alpha * tl.sum(total, axis=0) + beta * old, mask=i < length)


def _divisor(n, most=16):
    """The largest power of two up to ``most`` that divides n."""
    return most if n == 0 else min(most, n & -n)


def _tile(plain, m, n):
    """Rows and columns of a tile of A."""
    if plain:
        rows = min(256, max(16, triton.next_power_of_2(m)))
        return rows, 4096 // rows
    rows = min(512, max(16, triton.next_power_of_2(m)))
    return rows, min(4096 // rows, max(4, triton.next_power_of_2(n)))


def _parts(terms, step, blocks):
    """How many parts the sums are cut into, and their length: parts only where y alone gives too few blocks."""
    if blocks >= 264 or terms <= 4 * step:
        return 1, triton.cdiv(max(terms, 1), step) * step
    count = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * step))
    part = triton.cdiv(triton.cdiv(terms, count), step) * step
    return triton.cdiv(terms, part), part


def cublasSgemvBatched(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    """Aarray, xarray, yarray: addresses of 1-D float32 storage, element (i, j) of A at i + j * lda.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    plain = trans == "N"
    length, terms = (m, n) if plain else (n, m)
    x_first = (1 - terms) * incx if incx < 0 else 0
    y_first = (1 - length) * incy if incy < 0 else 0
    if alpha == 0:
        terms = 0
    rows, columns = _tile(plain, m, n)
    step = columns if plain else rows
    blocks = triton.cdiv(length, rows if plain else columns) * batchCount
    count, part = _parts(terms, step, blocks)
    warps = 4 if part <= step and count == 1 else 8
    sums = torch.empty(count * batchCount * length, dtype=torch.float32, device=yarray.device) if count > 1 else yarray
    ends = (incy, y_first, float(alpha), float(beta), int(beta != 0))
    shape = (m, terms) if plain else (terms, n)
    kinds = {"ROW_DIVISOR": _divisor(m), "DIVISOR": _divisor(lda), "SPLIT": count > 1}
    if not plain:
        kinds["DENSE"] = incx == 1
    (_gemv if plain else _gemv_transposed)[(blocks, count)](
        Aarray, xarray, yarray, sums, *shape, part, batchCount, lda, incx, x_first, *ends, **kinds,
        ROWS=rows, COLUMNS=columns, num_warps=warps,
    )  # fmt: skip
    if count > 1:
        _finish[(triton.cdiv(length, 32) * batchCount,)](
            sums, yarray, length, count, batchCount, *ends, PARTS=min(32, triton.next_power_of_2(count)), BLOCK=32,
            num_warps=4,
        )  # fmt: skip
