"""cublasDgemvStridedBatched: y = alpha * op(A) @ x + beta * y for each matrix of a batch at fixed strides, float64.

A tile's last axis runs down a column of A, along memory. Where x has no gaps and tiles cover A without a rest, a
program owns rows and walks along the columns, or owns columns of a transposed A and walks down the rows. Whatever else
there may be is cut into shares along the sums, and a second kernel adds the shares up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _put(at, total, inside, alpha, beta, READ_Y: tl.constexpr):
    """y = alpha * total + beta * y."""
    total *= alpha
    if READ_Y:
        total += beta * tl.load(at, mask=inside)
    tl.store(at, total, mask=inside)


@triton.jit
def _rows(
    a_ptr, x_ptr, y_ptr, blocks, turns, lda, a_batch, x_batch,
    incy, y_first, y_batch, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """ROWS elements of y, by ``turns`` tiles of PARTS * COLUMNS columns."""
    lda *= DIVISOR
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    first = tl.program_id(0) % blocks * ROWS
    row = tl.arange(0, ROWS)
    a_ptr += batch * a_batch + first
    x_ptr += batch * x_batch
    if PARTS == 1:
        column = tl.arange(0, COLUMNS)
        at = column[:, None] * lda + row[None, :]
        total = tl.zeros((ROWS,), tl.float64)
        for _ in tl.range(0, turns, num_stages=4):
            a = tl.load(a_ptr + at, eviction_policy="evict_first")
            total += tl.sum(a * tl.load(x_ptr + column)[:, None], axis=0)
            a_ptr += lda.to(tl.int64) * COLUMNS
            x_ptr += COLUMNS
    else:
        # A thread adds the parts up alone. The next tile is loaded before the sums that wait for one on its way.
        column = tl.arange(0, PARTS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        at = column[:, :, None] * lda + row[None, None, :]
        sums = tl.zeros((COLUMNS, ROWS), tl.float64)
        a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + column)
        for _ in range(1, turns):
            sums += tl.sum(a * x[:, :, None], axis=0)
            a_ptr += lda.to(tl.int64) * (PARTS * COLUMNS)
            x_ptr += PARTS * COLUMNS
            a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + column)
        total = tl.sum(sums + tl.sum(a * x[:, :, None], axis=0), axis=0)
    y_ptr += y_first + batch * y_batch
    _put(y_ptr + (first + row).to(tl.int64) * incy, total, None, alpha, beta, READ_Y)


@triton.jit
def _columns(
    a_ptr, x_ptr, y_ptr, blocks, turns, lda, a_batch, x_batch,
    incy, y_first, y_batch, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """COLUMNS elements of y of a transposed A, by ``turns`` tiles of PARTS * ROWS rows."""
    lda *= DIVISOR
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    first = tl.program_id(0) % blocks * COLUMNS
    column = tl.arange(0, COLUMNS)
    a_ptr += batch * a_batch + first.to(tl.int64) * lda
    x_ptr += batch * x_batch
    total = tl.zeros((COLUMNS, ROWS), tl.float64)
    if PARTS == 1:
        row = tl.arange(0, ROWS)
        at = column[:, None] * lda + row[None, :]
        for _ in tl.range(0, turns, num_stages=4):
            a = tl.load(a_ptr + at, eviction_policy="evict_first")
            total += a * tl.load(x_ptr + row)[None, :]
            a_ptr += ROWS
            x_ptr += ROWS
    else:
        row = tl.arange(0, PARTS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
        at = (column * lda)[None, :, None] + row[:, None, :]
        a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
        for _ in range(1, turns):
            total += tl.sum(a * x[:, None, :], axis=0)
            a_ptr += PARTS * ROWS
            x_ptr += PARTS * ROWS
            a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
        total += tl.sum(a * x[:, None, :], axis=0)
    y_ptr += y_first + batch * y_batch
    _put(y_ptr + (first + column).to(tl.int64) * incy, tl.sum(total, axis=1), None, alpha, beta, READ_Y)


@triton.jit
def _share(
    a_ptr, x_ptr, shares_ptr, length, blocks, terms, per, a_step, a_term, a_batch, incx, x_first, x_batch,
    BLOCK: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """shares (batch, element of y, share): sums of ``per`` terms, of any strides."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    i = (tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    begin = tl.program_id(1).to(tl.int64) * per
    a_ptr += batch * a_batch
    x_ptr += batch * x_batch + x_first
    total = tl.zeros((BLOCK, TERMS), tl.float64)
    for start in range(0, per, TERMS):
        term = begin + start + tl.arange(0, TERMS)
        inside = (i < length)[:, None] & (term < terms)[None, :]
        a = tl.load(a_ptr + i[:, None] * a_step + term[None, :] * a_term, mask=inside, other=0.0)
        total += a * tl.load(x_ptr + term * incx, mask=term < terms, other=0.0)[None, :]
    at = shares_ptr + (batch * length + i) * tl.num_programs(1) + tl.program_id(1)
    tl.store(at, tl.sum(total, axis=1), mask=i < length)


@triton.jit
def _total(
    shares_ptr, y_ptr, length, batches, count, incy, y_first, y_batch, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, BLOCK: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """y = alpha * the sum of ``count`` shares + beta * y."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    share = tl.arange(0, COUNT)
    inside = i // length < batches
    at = shares_ptr + (i * count)[:, None] + share[None, :]
    total = tl.sum(tl.load(at, mask=inside[:, None] & (share < count)[None, :], other=0.0), axis=1)
    _put(y_ptr + y_first + i // length * y_batch + i % length * incy, total, inside, alpha, beta, READ_Y)


def _even(plain, m, n, batches):
    """ROWS, COLUMNS, PARTS and warps where such tiles cover A without a rest and are enough for a device, else None."""
    if plain:
        if m in (64, 128) and n % 16 == 0 and m * batches >= 64 * 1056:
            return 64, 8, 1, 1
        return (128, 2, 8, 4) if m % 128 == 0 and n % 16 == 0 and m // 128 * batches >= 264 else None
    if m % 256 == 0 and m >= 1024 and n % 8 == 0 and n // 8 * batches >= 396:
        return 256, 8, 1, 4
    return (16, 32, 4, 4) if m % 64 == 0 and n % 32 == 0 and n // 32 * batches >= 200 else None


def cublasDgemvStridedBatched(
    trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount
):
    """A, x, y: 1-D float64 storage, element (i, j) of matrix p at i + j * lda + p * strideA.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m == 0 or n == 0 or batchCount == 0:
        return
    plain = trans == "N"
    length, terms = (m, n) if plain else (n, m)
    ends = (incy, (1 - length) * incy if incy < 0 else 0, stridey, float(alpha), float(beta))
    read = {"READ_Y": beta != 0}
    # Offsets in a tile have 32 bits.
    tile = _even(plain, m, n, batchCount) if alpha != 0 and incx == 1 and lda < 1 << 25 else None
    if tile:
        rows, columns, parts, warps = tile
        blocks, turns = (m // rows, n // (columns * parts)) if plain else (n // columns, m // (rows * parts))
        divisor = min(4, lda & -lda)
        (_rows if plain else _columns)[(blocks * batchCount,)](
            A, x, y, blocks, turns, lda // divisor, strideA, stridex, *ends, **read,
            ROWS=rows, COLUMNS=columns, PARTS=parts, DIVISOR=divisor, num_warps=warps,
        )  # fmt: skip
        return
    count, shares = 0, y
    if alpha != 0:
        block = min(128, max(16, triton.next_power_of_2(length)))
        step = 2048 // block
        blocks = triton.cdiv(length, block)
        most = max(1, min(triton.cdiv(792, blocks * batchCount), terms // (4 * step)))
        per = triton.cdiv(triton.cdiv(terms, most), step) * step
        count = triton.cdiv(terms, per)
        shares = torch.empty(batchCount * length * count, dtype=y.dtype, device=y.device)
        _share[(blocks * batchCount, count)](
            A, x, shares, length, blocks, terms, per, *((1, lda) if plain else (lda, 1)), strideA,
            incx, (1 - terms) * incx if incx < 0 else 0, stridex, BLOCK=block, TERMS=step, num_warps=4,
        )  # fmt: skip
    width = triton.next_power_of_2(max(1, count))
    block = 1024 // width
    _total[(triton.cdiv(length * batchCount, block),)](
        shares, y, length, batchCount, count, *ends, **read, BLOCK=block, COUNT=width, num_warps=4
    )  # fmt: skip
