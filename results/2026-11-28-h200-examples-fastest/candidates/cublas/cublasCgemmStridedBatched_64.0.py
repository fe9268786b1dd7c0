"""cublasCgemmStridedBatched_64: C = alpha * op(A) @ op(B) + beta * C for each matrix of a batch, complex64.

A complex matrix of r rows, stored by columns, is a real one of 2 r rows, real and imaginary parts in turn. One real
product of such tiles, (2 COLUMNS, DEPTH) and (DEPTH, 2 ROWS), holds the four sums of products of parts for a tile of
C; they are put together at the end, and conjugation is a sign there. It is formed in float64 by the tensor cores, whose
speed there is that of float32 elsewhere. A tile holds C transposed, so that its last axis runs along memory. Where C
has too few tiles, the depth is cut into parts, whose sums a second kernel adds up.
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
def _words(
    ptr, stride, line, start, ALONG: tl.constexpr, TURNED: tl.constexpr, LINES: tl.constexpr, DEPTH: tl.constexpr
):
    """Addresses, columns and words of LINES lines, DEPTH deep from ``start`` on.

    ALONG: memory runs along the depth. Else a tile is (DEPTH, 2 * LINES), TURNED (2 * LINES, DEPTH).
    """
    if ALONG:
        # In pieces of 16 words, lest columns meet in the banks of shared memory.
        piece = tl.arange(0, DEPTH // 8 * LINES)
        column, word = (line + piece % LINES)[:, None], (piece // LINES * 16)[:, None]
        at = ptr + (column * stride + start * 2 + word) + tl.arange(0, 16)[None, :]
        word += tl.arange(0, 16)[None, :]
    else:
        column, word = tl.arange(0, DEPTH), line * 2 + tl.arange(0, 2 * LINES)
        column = column[None, :] if TURNED else column[:, None]
        word = word[:, None] if TURNED else word[None, :]
        at = ptr + (start + column) * stride + word
    return at, column, word


@triton.jit
def _load(at, column, word, lines, depth, ALONG: tl.constexpr, WHOLE: tl.constexpr):
    """The words of ``_words``, 0 behind the last of the lines and of the depth."""
    inside = (column < (lines if ALONG else depth)) & (word < (depth if ALONG else lines) * 2)
    return tl.load(at, mask=WHOLE | inside, other=0.0)


@triton.jit
def _combined(real, imag, old_real, old_imag, alpha_real, alpha_imag, beta_real, beta_imag):
    """alpha * (real, imag) + beta * old."""
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    return out_real, (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)


@triton.jit(
    do_not_specialize=[
        "m", "n", "k", "part", "lda", "ldb", "ldc", "a_batch", "b_batch", "c_batch", "batches", "read_c",
    ]
)  # fmt: skip
def _gemm(
    a_ptr, b_ptr, c_ptr, sum_ptr, m, n, k, part, lda, ldb, ldc, a_batch, b_batch, c_batch, batches, a_sign, b_sign,
    alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    ALONG_A: tl.constexpr, ALONG_B: tl.constexpr, SPLIT: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of one C; SPLIT: its sums over ``part`` of the depth go to sum_ptr; WHOLE: all are full and aligned."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    # 2 m and 2 n real parts may not fit into 32 bits.
    m, n, k = m.to(tl.int64), n.to(tl.int64), k.to(tl.int64)
    top, left = tile_row.to(tl.int64) * ROWS, tile_column.to(tl.int64) * COLUMNS
    first = tl.program_id(1).to(tl.int64) * part
    depth = tl.minimum(k - first, part)
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    a_batch, b_batch, c_batch = a_batch.to(tl.int64), b_batch.to(tl.int64), c_batch.to(tl.int64)
    if WHOLE:
        first = tl.multiple_of(first, 16)
        lda, ldb, ldc = tl.multiple_of(lda, 16), tl.multiple_of(ldb, 16), tl.multiple_of(ldc, 16)
        a_batch, b_batch = tl.multiple_of(a_batch, 16), tl.multiple_of(b_batch, 16)
        c_batch = tl.multiple_of(c_batch, 16)
    lda, ldb, ldc = lda * 2, ldb * 2, ldc * 2
    a_at, a_column, a_word = _words(a_ptr + batch * a_batch * 2, lda, top, first, ALONG_A, False, ROWS, DEPTH)
    b_at, b_column, b_word = _words(b_ptr + batch * b_batch * 2, ldb, left, first, ALONG_B, True, COLUMNS, DEPTH)
    products = tl.zeros((2 * COLUMNS, 2 * ROWS), dtype=tl.float64)
    for start in range(0, depth, DEPTH):
        b = _load(b_at, b_column, b_word, n, depth - start, ALONG_B, WHOLE)
        a = _load(a_at, a_column, a_word, m, depth - start, ALONG_A, WHOLE)
        # (DEPTH, 2 * ROWS) and (2 * COLUMNS, DEPTH), whichever way they came.
        if ALONG_A:
            a = tl.permute(tl.reshape(a, (DEPTH // 8, ROWS, 8, 2)), (0, 2, 1, 3))
        if ALONG_B:
            b = tl.permute(tl.reshape(b, (DEPTH // 8, COLUMNS, 8, 2)), (1, 3, 0, 2))
        a = tl.reshape(a, (DEPTH, 2 * ROWS)).to(tl.float64)
        b = tl.reshape(b, (2 * COLUMNS, DEPTH)).to(tl.float64)
        products = tl.dot(b, a, products, input_precision="ieee", out_dtype=tl.float64)
        b_at += 2 * DEPTH if ALONG_B else ldb * DEPTH
        a_at += 2 * DEPTH if ALONG_A else lda * DEPTH
    # (column, part of b, row, part of a) into four tiles (column, row).
    sums = tl.reshape(products.to(tl.float32), (COLUMNS, 2, ROWS, 2))
    b_real, b_imag = tl.split(tl.permute(sums, (0, 2, 1, 3)))
    real_real, real_imag = tl.split(b_real)
    imag_real, imag_imag = tl.split(b_imag)
    real = real_real - imag_imag * (a_sign * b_sign)
    imag = imag_real * a_sign + real_imag * b_sign
    row, column = (top * 2 + tl.arange(0, 2 * ROWS))[None, :], (left + tl.arange(0, COLUMNS))[:, None]
    inside = WHOLE | ((column < n) & (row < m * 2))
    if SPLIT:
        at = sum_ptr + ((tl.program_id(1).to(tl.int64) * batches + batch) * n + column) * (m * 2) + row
    else:
        at = c_ptr + batch * c_batch * 2 + column * ldc + row
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
        old_real, old_imag = tl.split(tl.reshape(old, (COLUMNS, ROWS, 2)))
        real, imag = _combined(real, imag, old_real, old_imag, alpha_real, alpha_imag, beta_real, beta_imag)
    tl.store(at, tl.reshape(tl.join(real, imag), (COLUMNS, 2 * ROWS)), mask=inside)


@triton.jit(do_not_specialize=["m", "n", "count", "batches", "c_batch", "ldc", "read_c"])
def _add_parts(
    sum_ptr, c_ptr, m, n, count, batches, c_batch, ldc, alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    size = m.to(tl.int64) * n
    blocks = tl.cdiv(size, BLOCK)
    batch, program = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    e = program * BLOCK + tl.arange(0, BLOCK)
    word = program * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    total = tl.zeros((PARTS, 2 * BLOCK), dtype=tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + ((part * batches + batch) * size * 2)[:, None] + word[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & (word < size * 2)[None, :], other=0.0)
    real, imag = tl.split(tl.reshape(tl.sum(total, axis=0), (BLOCK, 2)))
    at = c_ptr + (batch * c_batch + e % m + e // m * ldc) * 2
    old_real = tl.load(at, mask=(e < size) & (read_c != 0), other=0.0)
    old_imag = tl.load(at + 1, mask=(e < size) & (read_c != 0), other=0.0)
    real, imag = _combined(real, imag, old_real, old_imag, alpha_real, alpha_imag, beta_real, beta_imag)
    tl.store(at, real, mask=e < size)
    tl.store(at + 1, imag, mask=e < size)


def _tiles(m, n, k, batch):
    """Tile of C, warps, and parts of the depth: as large as leaves enough programs for the GPU."""
    rows = min(64, max(16, triton.next_power_of_2(m)))
    columns = min(32, max(16, triton.next_power_of_2(n)))
    tiles = triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch
    parts = 1
    if tiles <= 132 and k >= 2048:
        parts = max(1, min(triton.cdiv(k, 512), (264 if rows * columns > 1024 else 528) // tiles))
    else:
        while triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch < 132 and max(rows, columns) > 16:
            if rows >= columns:
                rows //= 2
            else:
                columns //= 2
    area = 4 * rows * columns
    return rows, columns, 1 if area <= 1024 else 2 if area <= 2048 else 4 if area <= 4096 else 8, parts


def cublasCgemmStridedBatched_64(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D complex64 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    rows, columns, warps, parts = _tiles(m, n, k, batchCount)
    part = triton.cdiv(triton.cdiv(max(k, 1), parts), 16) * 16
    parts = triton.cdiv(max(k, 1), part)
    strides = (lda, ldb, ldc, strideA, strideB, strideC)
    full = m % rows == 0 and n % columns == 0 and k % 16 == 0
    whole = full and all(stride % 16 == 0 for stride in strides)
    a, b, c = (torch.view_as_real(each) for each in (A, B, C))
    sums = torch.empty(parts * batchCount * m * n * 2, dtype=torch.float32, device=C.device) if parts > 1 else c
    ends = (alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batchCount, parts)](
        a, b, c, sums, m, n, k, part, *strides, batchCount,
        -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0, *ends,
        ALONG_A=transa != "N", ALONG_B=transb == "N", SPLIT=parts > 1, WHOLE=whole,
        ROWS=rows, COLUMNS=columns, DEPTH=16, num_warps=warps, num_stages=3,
        maxnreg=128 if whole and warps == 8 else None,
    )  # fmt: skip
    if parts > 1:
        count = min(64, triton.next_power_of_2(parts))
        block = max(16, 1024 // count)
        _add_parts[(triton.cdiv(m * n, block) * batchCount,)](
            sums, c, m, n, parts, batchCount, strideC, ldc, *ends, PARTS=count, BLOCK=block, num_warps=4
        )
