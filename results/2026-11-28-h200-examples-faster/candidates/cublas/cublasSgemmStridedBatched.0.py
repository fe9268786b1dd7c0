"""cublasSgemmStridedBatched: C = alpha * op(A) @ op(B) + beta * C for each matrix of a batch, float32.

Matrices are stored column by column; a tile holds its part of C transposed, so that its last axis runs along memory.
WHOLE says that all tiles are full and all strides multiples of 16 elements: then nothing is masked and loads are wide.
"""

import triton
import triton.language as tl


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * down
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit(
    do_not_specialize=["m", "n", "k", "alpha", "beta", "lda", "ldb", "ldc", "a_batch", "b_batch", "c_batch", "read_c"]
)
def _gemm(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, lda, ldb, ldc, a_batch, b_batch, c_batch, read_c,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C of one matrix."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    row = tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH)
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    a_batch, b_batch, c_batch = a_batch.to(tl.int64), b_batch.to(tl.int64), c_batch.to(tl.int64)
    if WHOLE:
        lda, ldb, ldc = tl.multiple_of(lda, 16), tl.multiple_of(ldb, 16), tl.multiple_of(ldc, 16)
        a_batch, b_batch = tl.multiple_of(a_batch, 16), tl.multiple_of(b_batch, 16)
        c_batch = tl.multiple_of(c_batch, 16)
    a_ptr += batch * a_batch
    b_ptr += batch * b_batch
    c_ptr += batch * c_batch
    # left is op(B) transposed, (COLUMNS, DEPTH); right is op(A) transposed, (DEPTH, ROWS).
    if TRANSPOSED_B:
        left_at = b_ptr + column[:, None] + step[None, :] * ldb
        left_step = ldb * DEPTH
    else:
        left_at = b_ptr + column[:, None] * ldb + step[None, :]
        left_step = DEPTH
    if TRANSPOSED_A:
        right_at = a_ptr + step[:, None] + row[None, :] * lda
        right_step = DEPTH
    else:
        right_at = a_ptr + step[:, None] * lda + row[None, :]
        right_step = lda * DEPTH
    total = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        if WHOLE:
            left = tl.load(left_at)
            right = tl.load(right_at)
        else:
            inside = step < k - start
            left = tl.load(left_at, mask=(column < n)[:, None] & inside[None, :], other=0.0)
            right = tl.load(right_at, mask=inside[:, None] & (row < m)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=tl.float32)
        left_at += left_step
        right_at += right_step
    at = c_ptr + column[:, None] * ldc + row[None, :]
    if WHOLE:
        old = tl.load(at, mask=read_c != 0, other=0.0)
        tl.store(at, total * alpha + old * beta)
    else:
        inside = (column < n)[:, None] & (row < m)[None, :]
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
        tl.store(at, total * alpha + old * beta, mask=inside)


def _tiles(m, n, batch):
    """Tile of C and number of warps: as large as leaves enough tiles for the GPU."""
    rows = min(128, max(16, triton.next_power_of_2(m)))
    columns = min(128, max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch < 200 and max(rows, columns) > 64:
        if rows >= columns:
            rows //= 2
        else:
            columns //= 2
    area = rows * columns
    return rows, columns, 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 8192 else 8


def cublasSgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D float32 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    rows, columns, warps = _tiles(m, n, batchCount)
    depth, stages = 16, 3
    full = m % rows == 0 and n % columns == 0 and k % depth == 0
    whole = full and all(stride % 16 == 0 for stride in (lda, ldb, ldc, strideA, strideB, strideC))
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batchCount,)](
        A, B, C, m, n, k, float(alpha), float(beta), lda, ldb, ldc, strideA, strideB, strideC, int(beta != 0),
        TRANSPOSED_A=transa != "N", TRANSPOSED_B=transb != "N", WHOLE=whole,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=warps, num_stages=stages,
    )  # fmt: skip
