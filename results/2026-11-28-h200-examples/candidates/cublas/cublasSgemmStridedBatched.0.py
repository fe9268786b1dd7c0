"""cublasSgemmStridedBatched: C = alpha * op(A) @ op(B) + beta * C for matrices at fixed strides, float32.

As in cublasSgemm_v2 the kernel works on the transposes of the column-major matrices. A batch may be far longer than a
matrix, so offsets are counted in 64 bits.
"""

import triton
import triton.language as tl


@triton.jit
def _gemm(
    x_ptr, y_ptr, c_ptr, rows, columns, depth, tiles, alpha, beta,
    x_row, x_depth, x_batch, y_depth, y_column, y_batch, ldc, c_batch,
    READ_C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of one c (rows, columns) = alpha * x (rows, depth) @ y (depth, columns) + beta * c."""
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (rows - 1) // ROWS + 1
    row = (tile % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile // down * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    x_at = x_ptr + batch * x_batch + row * x_row + step[None, :] * x_depth
    y_at = y_ptr + batch * y_batch + step[:, None] * y_depth + column * y_column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, depth, DEPTH):
        x = tl.load(x_at, mask=(row < rows) & (first + step[None, :] < depth), other=0.0)
        y = tl.load(y_at, mask=(first + step[:, None] < depth) & (column < columns), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        x_at += deep * x_depth
        y_at += deep * y_depth
    total *= alpha
    c_at = c_ptr + batch * c_batch + row * ldc + column
    inside = (row < rows) & (column < columns)
    if READ_C:
        total += beta * tl.load(c_at, mask=inside)
    tl.store(c_at, total, mask=inside)


def cublasSgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D float32 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m == 0 or n == 0 or batchCount == 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    most = 64 if C.is_cuda else 512
    rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for size in (n, m))
    depth = max(16, min(32 if C.is_cuda else 512, triton.next_power_of_2(k)))
    tiles = triton.cdiv(n, rows) * triton.cdiv(m, columns)
    x_strides = (ldb, 1) if transb == "N" else (1, ldb)
    y_strides = (lda, 1) if transa == "N" else (1, lda)
    _gemm[(tiles * batchCount,)](
        B, A, C, n, m, k, tiles, float(alpha), float(beta), *x_strides, strideB, *y_strides, strideA, ldc, strideC,
        READ_C=beta != 0, ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=4,
    )  # fmt: skip
