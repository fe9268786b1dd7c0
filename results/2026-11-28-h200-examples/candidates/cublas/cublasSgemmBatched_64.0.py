"""cublasSgemmBatched_64: C = alpha * op(A) @ op(B) + beta * C for the matrices behind arrays of pointers, float32.

As in cublasSgemm_v2 the kernel works on the transposes of the column-major matrices. Sizes may need 64 bits, so what is
added to an address is counted in them.
"""

import triton
import triton.language as tl


@triton.jit
def _gemm(
    x_array, y_array, c_array, rows, columns, depth, tiles, alpha, beta,
    x_row, x_depth, y_depth, y_column, ldc,
    READ_C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of one c (rows, columns) = alpha * x (rows, depth) @ y (depth, columns) + beta * c."""
    batch, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    x_ptr = tl.load(x_array + batch).to(tl.pointer_type(tl.float32))
    y_ptr = tl.load(y_array + batch).to(tl.pointer_type(tl.float32))
    c_ptr = tl.load(c_array + batch).to(tl.pointer_type(tl.float32))
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (rows - 1) // ROWS + 1
    row = ((tile % down).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = ((tile // down).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    # DEPTH strides may leave 32 bits.
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


def cublasSgemmBatched_64(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    """Aarray, Barray, Carray: int64 addresses of column-major matrices. With beta 0 C is not read."""
    if m == 0 or n == 0 or batchCount == 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    most = 64 if Carray.is_cuda else 512
    rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for size in (n, m))
    depth = max(16, min(32 if Carray.is_cuda else 512, triton.next_power_of_2(k)))
    tiles = triton.cdiv(n, rows) * triton.cdiv(m, columns)
    x_strides = (ldb, 1) if transb == "N" else (1, ldb)
    y_strides = (lda, 1) if transa == "N" else (1, lda)
    _gemm[(tiles * batchCount,)](
        Barray, Aarray, Carray, n, m, k, tiles, float(alpha), float(beta), *x_strides, *y_strides, ldc,
        READ_C=beta != 0, ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=4,
    )  # fmt: skip
