"""cublasZgemmStridedBatched: C = alpha * op(A) @ op(B) + beta * C for each matrix of a batch, complex128.

A complex matrix of r rows, stored by columns, is a real one of 2 r rows, real and imaginary parts in turn. One real
product of such tiles, (2 COLUMNS, DEPTH) and (DEPTH, 2 ROWS), holds the four sums of products of parts for a tile of
C; they are put together at the end, and conjugation is a sign there. A tile holds C transposed, so that its last axis
runs along memory. WHOLE: all tiles are full and all strides multiples of 16 elements; then nothing is masked.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * down
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit
def _words(ptr, stride, first, ALONG: tl.constexpr, LINES: tl.constexpr, DEPTH: tl.constexpr):
    """Addresses of LINES lines from ``first`` on, DEPTH deep, their columns and words; ALONG: memory runs in depth."""
    if ALONG:
        column, word = first + tl.arange(0, LINES), tl.arange(0, 2 * DEPTH)
    else:
        column, word = tl.arange(0, DEPTH), first * 2 + tl.arange(0, 2 * LINES)
    return ptr + column[:, None] * stride + word[None, :], column, word


@triton.jit
def _load(at, column, word, lines, depth, ALONG: tl.constexpr, WHOLE: tl.constexpr):
    """The words of ``_words``, 0 behind the last of the lines and of the depth."""
    if WHOLE:
        return tl.load(at)
    inside = (column < (lines if ALONG else depth))[:, None] & (word < (depth if ALONG else lines) * 2)[None, :]
    return tl.load(at, mask=inside, other=0.0)


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "a_batch", "b_batch", "c_batch", "read_c"])
def _gemm(
    a_ptr, b_ptr, c_ptr, m, n, k, lda, ldb, ldc, a_batch, b_batch, c_batch, a_sign, b_sign,
    alpha_real: tl.float64, alpha_imag: tl.float64, beta_real: tl.float64, beta_imag: tl.float64, read_c,
    ALONG_A: tl.constexpr, ALONG_B: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C of one matrix; ALONG: the operand's memory runs along the depth."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    # 2 m and 2 n real parts may not fit into 32 bits.
    m, n, k = m.to(tl.int64), n.to(tl.int64), k.to(tl.int64)
    top, left = tile_row.to(tl.int64) * ROWS, tile_column.to(tl.int64) * COLUMNS
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    a_batch, b_batch, c_batch = a_batch.to(tl.int64), b_batch.to(tl.int64), c_batch.to(tl.int64)
    if WHOLE:
        lda, ldb, ldc = tl.multiple_of(lda, 16), tl.multiple_of(ldb, 16), tl.multiple_of(ldc, 16)
        a_batch, b_batch = tl.multiple_of(a_batch, 16), tl.multiple_of(b_batch, 16)
        c_batch = tl.multiple_of(c_batch, 16)
    lda, ldb, ldc = lda * 2, ldb * 2, ldc * 2
    a_at, a_column, a_word = _words(a_ptr + batch * a_batch * 2, lda, top, ALONG_A, ROWS, DEPTH)
    b_at, b_column, b_word = _words(b_ptr + batch * b_batch * 2, ldb, left, ALONG_B, COLUMNS, DEPTH)
    products = tl.zeros((2 * COLUMNS, 2 * ROWS), dtype=tl.float64)
    for start in range(0, k, DEPTH):
        b = _load(b_at, b_column, b_word, n, k - start, ALONG_B, WHOLE)
        a = _load(a_at, a_column, a_word, m, k - start, ALONG_A, WHOLE)
        # (DEPTH, 2 * ROWS) and (2 * COLUMNS, DEPTH), whichever way they came.
        if ALONG_A:
            a = tl.reshape(tl.permute(tl.reshape(a, (ROWS, DEPTH, 2)), (1, 0, 2)), (DEPTH, 2 * ROWS))
        if ALONG_B:
            b = tl.reshape(tl.permute(tl.reshape(b, (COLUMNS, DEPTH, 2)), (0, 2, 1)), (2 * COLUMNS, DEPTH))
        else:
            b = tl.trans(b)
        products = tl.dot(b, a, products, input_precision="ieee", out_dtype=tl.float64)
        b_at += 2 * DEPTH if ALONG_B else ldb * DEPTH
        a_at += 2 * DEPTH if ALONG_A else lda * DEPTH
    # (column, part of b, row, part of a) into four tiles (column, row).
    b_real, b_imag = tl.split(tl.permute(tl.reshape(products, (COLUMNS, 2, ROWS, 2)), (0, 2, 1, 3)))
    real_real, real_imag = tl.split(b_real)
    imag_real, imag_imag = tl.split(b_imag)
    real = real_real - imag_imag * (a_sign * b_sign)
    imag = imag_real * a_sign + real_imag * b_sign
    row, column = top * 2 + tl.arange(0, 2 * ROWS), left + tl.arange(0, COLUMNS)
    inside = WHOLE | ((column < n)[:, None] & (row < m * 2)[None, :])
    at = c_ptr + batch * c_batch * 2 + column[:, None] * ldc + row[None, :]
    old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
    old_real, old_imag = tl.split(tl.reshape(old, (COLUMNS, ROWS, 2)))
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    tl.store(at, tl.reshape(tl.join(out_real, out_imag), (COLUMNS, 2 * ROWS)), mask=inside)


def _tiles(m, n, batch):
    """Tile of C and warps: as large as leaves enough programs for the GPU."""
    rows = min(64, max(16, triton.next_power_of_2(m)))
    columns = min(32, max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch < 132 and max(rows, columns) > 16:
        if rows >= columns:
            rows //= 2
        else:
            columns //= 2
    area = 4 * rows * columns
    return rows, columns, 2 if area <= 1024 else 4 if area <= 4096 else 8


def cublasZgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D complex128 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    rows, columns, warps = _tiles(m, n, batchCount)
    strides = (lda, ldb, ldc, strideA, strideB, strideC)
    full = m % rows == 0 and n % columns == 0 and k % 16 == 0
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batchCount,)](
        torch.view_as_real(A), torch.view_as_real(B), torch.view_as_real(C), m, n, k, *strides,
        -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0,
        alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0), ALONG_A=transa != "N", ALONG_B=transb == "N",
        WHOLE=full and all(stride % 16 == 0 for stride in strides),
        ROWS=rows, COLUMNS=columns, DEPTH=16, num_warps=warps, num_stages=3,
    )  # fmt: skip
