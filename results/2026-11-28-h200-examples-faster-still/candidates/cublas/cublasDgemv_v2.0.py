"""cublasDgemv_v2: y = alpha * op(A) @ x + beta * y in float64, A stored column by column.

A tile's last axis runs down a column, along memory. Where x has no gaps and tiles cover A without a rest, a program
owns rows (of a long A only some columns of them, whose sums it adds to y), or columns if A is transposed. A tall
transposed A and whatever else there may be is cut into shares along the sums, and a second kernel adds the shares up.
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
    a_ptr, x_ptr, y_ptr, lda, incy, y_first, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """ROWS elements of y by a single tile of all columns."""
    first = tl.program_id(0) * ROWS
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = column[:, None] * (lda * DIVISOR) + row[None, :]
    a = tl.load(a_ptr + first + at, eviction_policy="evict_first")
    total = tl.sum(a * tl.load(x_ptr + column)[:, None], axis=0)
    _put(y_ptr + y_first + (first + row).to(tl.int64) * incy, total, None, alpha, beta, READ_Y)


@triton.jit(do_not_specialize=["per"])
def _add_columns(
    a_ptr, x_ptr, y_ptr, columns, per, lda, incy, y_first, alpha: tl.float64,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """What ``per`` columns add to ROWS elements of y."""
    lda *= DIVISOR
    first, begin = tl.program_id(0) * ROWS, tl.program_id(1) * per
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = column[:, None] * lda + row[None, :]
    a_ptr += begin.to(tl.int64) * lda + first
    x_ptr += begin
    total = tl.zeros((ROWS,), tl.float64)
    for _ in tl.range(0, tl.minimum(columns - begin, per) // COLUMNS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        total += tl.sum(a * tl.load(x_ptr + column)[:, None], axis=0)
        a_ptr += lda.to(tl.int64) * COLUMNS
        x_ptr += COLUMNS
    tl.atomic_add(y_ptr + y_first + (first + row).to(tl.int64) * incy, alpha * total, sem="relaxed")


@triton.jit
def _columns(
    a_ptr, x_ptr, y_ptr, rows, lda, incy, y_first, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """COLUMNS elements of y of a transposed A."""
    lda *= DIVISOR
    first = tl.program_id(0) * COLUMNS
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = column[:, None] * lda + row[None, :]
    a_ptr += first.to(tl.int64) * lda
    total = tl.zeros((COLUMNS, ROWS), tl.float64)
    for _ in tl.range(0, rows // ROWS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        total += a * tl.load(x_ptr + row)[None, :]
        a_ptr += ROWS
        x_ptr += ROWS
    _put(y_ptr + y_first + (first + column).to(tl.int64) * incy, tl.sum(total, axis=1), None, alpha, beta, READ_Y)


@triton.jit(do_not_specialize=["per"])
def _tall_share(
    a_ptr, x_ptr, shares_ptr, tiles, per, lda,
    PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """shares (column, share) of a transposed A: sums of ``per`` tiles of PARTS * ROWS rows.

    A thread adds the parts up alone. The next tile is loaded before the sums that wait for one that is on its way.
    """
    first, begin = tl.program_id(0) * COLUMNS, tl.program_id(1) * per
    turns = tl.minimum(tiles - begin, per)
    column = tl.arange(0, COLUMNS)
    row = tl.arange(0, PARTS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    lda *= DIVISOR
    at = (column * lda)[None, :, None] + row[:, None, :]
    a_ptr += first.to(tl.int64) * lda + begin * (PARTS * ROWS)
    x_ptr += begin * (PARTS * ROWS)
    total = tl.zeros((COLUMNS, ROWS), tl.float64)
    a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
    for _ in range(1, turns):
        total += tl.sum(a * x[:, None, :], axis=0)
        a_ptr += PARTS * ROWS
        x_ptr += PARTS * ROWS
        a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
    total += tl.sum(a * x[:, None, :], axis=0)
    shares_at = shares_ptr + (first + column) * tl.num_programs(1) + tl.program_id(1)
    tl.store(shares_at, tl.sum(total, axis=1))


@triton.jit
def _share(
    a_ptr, x_ptr, shares_ptr, length, terms, per, a_step, a_term, incx, x_first,
    BLOCK: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """shares (element of y, share): sums of ``per`` terms, of any strides."""
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    begin = tl.program_id(1).to(tl.int64) * per
    total = tl.zeros((BLOCK, TERMS), tl.float64)
    for start in range(0, per, TERMS):
        term = begin + start + tl.arange(0, TERMS)
        inside = (i < length)[:, None] & (term < terms)[None, :]
        a = tl.load(a_ptr + i[:, None] * a_step + term[None, :] * a_term, mask=inside, other=0.0)
        total += a * tl.load(x_ptr + x_first + term * incx, mask=term < terms, other=0.0)[None, :]
    tl.store(shares_ptr + i * tl.num_programs(1) + tl.program_id(1), tl.sum(total, axis=1), mask=i < length)


@triton.jit
def _total(
    shares_ptr, y_ptr, length, count, incy, y_first, alpha: tl.float64, beta: tl.float64,
    READ_Y: tl.constexpr, BLOCK: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """y = alpha * the sum of ``count`` shares + beta * y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    share = tl.arange(0, COUNT)
    inside = i < length
    i = i.to(tl.int64)
    at = shares_ptr + (i * count)[:, None] + share[None, :]
    total = tl.sum(tl.load(at, mask=inside[:, None] & (share < count)[None, :], other=0.0), axis=1)
    _put(y_ptr + y_first + i * incy, total, inside, alpha, beta, READ_Y)


def _finish(shares, y, length, count, *ends, **read):
    """Without shares y is only multiplied by beta."""
    width = triton.next_power_of_2(max(1, count))
    block = 1024 // width
    _total[(triton.cdiv(length, block),)](
        shares, y, length, count, *ends, **read, BLOCK=block, COUNT=width, num_warps=4
    )  # fmt: skip


def _cut(terms, most, step):
    """How many shares of the sums, up to ``most``, and how many terms each, a multiple of ``step``."""
    per = triton.cdiv(triton.cdiv(terms, most), step) * step
    return triton.cdiv(terms, per), per


def cublasDgemv_v2(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D storage; a negative increment walks from the far end: element i is at (i + 1 - length) * inc.

    With beta 0 y is not read, with alpha 0 neither A nor x is, not even their NaNs.
    """
    if m == 0 or n == 0:
        return
    plain = trans == "N"
    length, terms = (m, n) if plain else (n, m)
    ends = (incy, (1 - length) * incy if incy < 0 else 0, float(alpha), float(beta))
    read, divisor = {"READ_Y": beta != 0}, min(4, lda & -lda)
    if alpha == 0:
        return _finish(y, y, length, 0, *ends, **read)
    lead = lda // divisor
    # Offsets in a tile have 32 bits, and no tile has more than 1024 columns.
    dense = incx == 1 and lda < 1 << 21
    wide = min(32, n & -n)
    if dense and plain and m % 8 == 0 and m <= 1600 and n in (512, 1024):
        _rows[(m // 8,)](A, x, y, lead, *ends, **read, ROWS=8, COLUMNS=n, DIVISOR=divisor, num_warps=16)
    elif dense and plain and m % 256 == 0 and m >= 4096 and n % 8 == 0 and n >= 256:
        if beta != 1:
            _finish(y, y, m, 0, *ends, **read)
        count, per = _cut(n, max(1, min(triton.cdiv(1440, m // 256), n // 64)), 8)
        _add_columns[(m // 256, count)](
            A, x, y, n, per, lead, *ends[:3], ROWS=256, COLUMNS=8, DIVISOR=divisor, num_warps=4
        )  # fmt: skip
    elif dense and not plain and m % 256 == 0 and m >= 1024 and n % 8 == 0 and n >= 8 * 396:
        _columns[(n // 8,)](A, x, y, m, lead, *ends, **read, ROWS=256, COLUMNS=8, DIVISOR=divisor, num_warps=4)
    elif dense and not plain and m % 64 == 0 and m >= 1024 and wide >= 8 and n < 200 * wide:
        count, per = _cut(m // 64, min(triton.cdiv(792, n // wide), m // 256), 1)
        shares = torch.empty(n * count, dtype=A.dtype, device=A.device)
        _tall_share[(n // wide, count)](
            A, x, shares, m // 64, per, lead, PARTS=2, ROWS=32, COLUMNS=wide, DIVISOR=divisor, num_warps=4
        )  # fmt: skip
        _finish(shares, y, n, count, *ends, **read)
    else:
        block, step = (128, 16) if plain else (8, 256)
        if not A.is_cuda:  # the interpreter: as few programs as possible
            block, step = triton.next_power_of_2(min(length, 512)), triton.next_power_of_2(min(terms, 1024))
        blocks = triton.cdiv(length, block)
        count, per = _cut(terms, max(1, 1024 // blocks) if A.is_cuda else 1, step)
        shares = torch.empty(length * count, dtype=A.dtype, device=A.device)
        _share[(blocks, count)](
            A, x, shares, length, terms, per, *((1, lda) if plain else (lda, 1)), incx,
            (1 - terms) * incx if incx < 0 else 0, BLOCK=block, TERMS=step, num_warps=4,
        )  # fmt: skip
        _finish(shares, y, length, count, *ends, **read)
