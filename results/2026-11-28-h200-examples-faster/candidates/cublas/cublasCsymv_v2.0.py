"""cublasCsymv_v2: y = alpha * A x + beta * y for a symmetric complex64 A of which one triangle is given.

The given triangle is cut into square tiles, each read once: it stands in A twice, as it is and mirrored, so a tile
gives a part of the sums of its rows and one of the sums of its columns. With parts (blocks + 1, n), where part b of row
i comes from the tile of row i and the columns of block b, every part is written once: no atomics. Then the parts are
summed. A complex matrix of n rows is a real one of 2 n rows, real and imaginary parts in turn; nothing is conjugated.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load_complex(at, mask):
    """Real and imaginary parts."""
    return tl.load(at, mask=mask, other=0.0), tl.load(at + 1, mask=mask, other=0.0)


@triton.jit
def _store_complex(at, real, imag, mask):
    tl.store(at, real, mask=mask)
    tl.store(at + 1, imag, mask=mask)


@triton.jit
def _multiply(
    a_ptr, x_ptr, parts_ptr, row_block, column_block, blocks, n, column_stride, incx, x_first,
    DIAGONAL: tl.constexpr, LOWER: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """The parts that a tile gives, STEP columns at a time; a tile's last axis runs down a column, along memory."""
    row = row_block.to(tl.int64) * (2 * SIZE) + tl.arange(0, 2 * SIZE)
    i = row // 2
    row_real, row_imag = _load_complex(x_ptr + (x_first + i * incx) * 2, row < n * 2)
    # A column's sums of these products with A's real and imaginary parts in turn are real and imaginary part of A x.
    odd = row % 2 == 1
    to_real = tl.where(odd, -row_imag, row_real)
    to_imag = tl.where(odd, row_real, row_imag)
    by_real = tl.zeros((STEP, 2 * SIZE), dtype=tl.float32)
    by_imag = tl.zeros((STEP, 2 * SIZE), dtype=tl.float32)
    for start in range(0, SIZE, STEP):
        j = column_block.to(tl.int64) * SIZE + start + tl.arange(0, STEP)
        x_real, x_imag = _load_complex(x_ptr + (x_first + j * incx) * 2, j < n)
        given = (j < n)[:, None] & (row < n * 2)[None, :]
        if DIAGONAL:
            given = given & (i[None, :] >= j[:, None] if LOWER else i[None, :] <= j[:, None])
        # An infinite x makes NaN of an element not given, times 0, but then no sum is finite anyway.
        a = tl.load(a_ptr + j[:, None] * column_stride + row[None, :], mask=given, other=0.0)
        by_real += a * x_real[:, None]
        by_imag += a * x_imag[:, None]
        if DIAGONAL:
            # The diagonal itself has no mirror image.
            a = tl.where(i[None, :] == j[:, None], 0.0, a)
        real = tl.sum(a * to_real[None, :], axis=1)
        imag = tl.sum(a * to_imag[None, :], axis=1)
        # Part row_block of a tile on the diagonal is its rows', so its columns have the last part.
        part = blocks if DIAGONAL else row_block
        _store_complex(parts_ptr + (part * n + j) * 2, real, imag, j < n)
    real_real, imag_real = tl.split(tl.reshape(tl.sum(by_real, axis=0), (SIZE, 2)))
    real_imag, imag_imag = tl.split(tl.reshape(tl.sum(by_imag, axis=0), (SIZE, 2)))
    i = row_block.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    at = parts_ptr + (column_block * n + i) * 2
    _store_complex(at, real_real - imag_imag, real_imag + imag_real, i < n)


@triton.jit(do_not_specialize=["n", "lda", "incx", "x_first"])
def _products(
    a_ptr, x_ptr, parts_ptr, n, lda, incx, x_first,
    N_DIVISOR: tl.constexpr, LDA_DIVISOR: tl.constexpr, LOWER: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """One tile. The divisors are powers of two, from which the compiler sees how wide it may load."""
    blocks = tl.cdiv(n, SIZE)
    row_block, column_block = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    outside = row_block < column_block if LOWER else row_block > column_block
    if outside:
        return
    n = tl.multiple_of(n.to(tl.int64), N_DIVISOR)
    column_stride = tl.multiple_of(lda.to(tl.int64), LDA_DIVISOR) * 2
    if row_block == column_block:
        _multiply(
            a_ptr, x_ptr, parts_ptr, row_block, column_block, blocks, n, column_stride, incx, x_first,
            True, LOWER, SIZE, STEP,
        )  # fmt: skip
    else:
        _multiply(
            a_ptr, x_ptr, parts_ptr, row_block, column_block, blocks, n, column_stride, incx, x_first,
            False, LOWER, SIZE, STEP,
        )  # fmt: skip


@triton.jit(
    do_not_specialize=[
        "n", "count", "incy", "y_first", "alpha_real", "alpha_imag", "beta_real", "beta_imag", "read_y",
    ]
)  # fmt: skip
def _combine(
    parts_ptr, y_ptr, n, count, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, read_y,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = alpha * (the sum of ``count`` parts) + beta * y, parts always in the same order."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    reals = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    imags = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = parts_ptr + ((part * n)[:, None] + i[None, :]) * 2
        real, imag = _load_complex(at, (part < count)[:, None] & (i < n)[None, :])
        reals += real
        imags += imag
    real, imag = tl.sum(reals, axis=0), tl.sum(imags, axis=0)
    at = y_ptr + (y_first + i * incy) * 2
    old_real, old_imag = _load_complex(at, (i < n) & (read_y != 0))
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    _store_complex(at, out_real, out_imag, i < n)


def _divisor(size):
    """The greatest power of two up to 16 that divides ``size``."""
    return min(16, size & -size)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasCsymv_v2(uplo, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D complex64 storage; A(i, j) at i + j * lda, its named triangle is read. With beta 0 y is not read."""
    if n <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    a_numbers, x_numbers, y_numbers = (torch.view_as_real(each) for each in (A, x, y))
    count, parts = 0, y_numbers  # with alpha 0 neither A nor x counts, not even their NaNs
    if alpha != 0:
        size = 32 if n <= 1024 else 64 if n <= 4096 else 128
        blocks = triton.cdiv(n, size)
        count = blocks + 1
        parts = torch.empty((count, n, 2), dtype=torch.float32, device=y.device)
        _products[(blocks * blocks,)](
            a_numbers, x_numbers, parts, n, lda, incx, _first(n, incx),
            N_DIVISOR=_divisor(n), LDA_DIVISOR=_divisor(lda), LOWER=uplo == "L", SIZE=size, STEP=16,
            num_warps=8 if size == 128 else 4,
        )  # fmt: skip
    _combine[(triton.cdiv(n, 32),)](
        parts, y_numbers, n, count, incy, _first(n, incy), alpha.real, alpha.imag, beta.real, beta.imag,
        int(beta != 0), PARTS=32, BLOCK=32, num_warps=4,
    )  # fmt: skip
