"""cublasSgemm_v2: C = alpha * op(A) @ op(B) + beta * C in float32, matrices stored column by column.

A column-major C (m, n) is a row-major C^T (n, m), and C^T = op(B)^T @ op(A)^T: the kernel works on these transposes,
so that neighbouring threads store neighbouring words.
"""

import triton
import triton.language as tl


@triton.jit
def _gemm(
    x_ptr, y_ptr, c_ptr, rows, columns, depth, alpha, beta,
    x_row, x_depth, y_depth, y_column, ldc,
    READ_C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A tile of c (rows, columns) = alpha * x (rows, depth) @ y (depth, columns) + beta * c."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (rows - 1) // ROWS + 1, (columns - 1) // COLUMNS + 1
    # Programs that run at the same time share tiles of x and y: GROUP tiles down before one step across.
    band = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    tile_row = band * GROUP + tl.program_id(0) % (GROUP * across) % height
    tile_column = tl.program_id(0) % (GROUP * across) // height
    row = (tile_row * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile_column * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    x_at = x_ptr + row * x_row + step[None, :] * x_depth
    y_at = y_ptr + step[:, None] * y_depth + column * y_column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, depth, DEPTH):
        x = tl.load(x_at, mask=(row < rows) & (first + step[None, :] < depth), other=0.0)
        y = tl.load(y_at, mask=(first + step[:, None] < depth) & (column < columns), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        x_at += deep * x_depth
        y_at += deep * y_depth
    total *= alpha
    c_at = c_ptr + row * ldc + column
    inside = (row < rows) & (column < columns)
    if READ_C:
        total += beta * tl.load(c_at, mask=inside)
    tl.store(c_at, total, mask=inside)


def _tiles(m, n, k, is_cuda):
    """ROWS, COLUMNS, DEPTH: on a device what its registers hold, in the interpreter as few programs as possible."""
    if not is_cuda:
        return tuple(max(16, min(512, triton.next_power_of_2(size))) for size in (n, m, k))
    if m * n >= 2048 * 2048:
        return 128, 128, 16
    return (64, 128, 16) if m * n >= 512 * 512 else (32, 64, 32)


def cublasSgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    """A, B, C: 1-D float32 storage, element (i, j) at i + j * ld. With beta 0 C is not read; padding is not written."""
    if m == 0 or n == 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    rows, columns, depth = _tiles(m, n, k, C.is_cuda)
    grid = (triton.cdiv(n, rows) * triton.cdiv(m, columns),)
    x_strides = (ldb, 1) if transb == "N" else (1, ldb)
    y_strides = (lda, 1) if transa == "N" else (1, lda)
    _gemm[grid](
        B, A, C, n, m, k, float(alpha), float(beta), *x_strides, *y_strides, ldc,
        READ_C=beta != 0, ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8, num_warps=4,
    )  # fmt: skip
