"""cublasZgemmStridedBatched: C = alpha * op(A) @ op(B) + beta * C for each matrix of a batch, complex128.

A complex number is a pair of doubles, real part first; matrices are stored column by column, and as C^T = op(B)^T @
op(A)^T the kernel works on the transposes, so that neighbouring threads store neighbouring words.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _gemm(
    x_ptr, y_ptr, c_ptr, rows, columns, depth, tiles,
    alpha_real: tl.float64, alpha_imag: tl.float64, beta_real: tl.float64, beta_imag: tl.float64,
    x_row, x_depth, x_batch, y_depth, y_column, y_batch, ldc, c_batch,
    X_SIGN: tl.constexpr, Y_SIGN: tl.constexpr, READ_C: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of one c (rows, columns) = alpha * x @ y + beta * c; X_SIGN, Y_SIGN: -1 conjugates. Strides in numbers."""
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (rows - 1) // ROWS + 1
    row = (tile % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = (tile // down * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    x_at = x_ptr + 2 * (batch * x_batch + row * x_row)
    y_at = y_ptr + 2 * (batch * y_batch + column * y_column)
    # 2 strides may leave 32 bits.
    two = tl.full((), 2, tl.int64)
    real = tl.zeros((ROWS, COLUMNS), tl.float64)
    imag = tl.zeros((ROWS, COLUMNS), tl.float64)
    for _ in range(depth):
        a = tl.load(x_at, mask=row < rows, other=0.0)[:, None]
        b = tl.load(x_at + 1, mask=row < rows, other=0.0)[:, None] * X_SIGN
        c = tl.load(y_at, mask=column < columns, other=0.0)[None, :]
        d = tl.load(y_at + 1, mask=column < columns, other=0.0)[None, :] * Y_SIGN
        real += a * c
        real -= b * d
        imag += a * d
        imag += b * c
        x_at += two * x_depth
        y_at += two * y_depth
    out_real = alpha_real * real - alpha_imag * imag
    out_imag = alpha_real * imag + alpha_imag * real
    at = c_ptr + 2 * (batch * c_batch + row[:, None] * ldc + column[None, :])
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    if READ_C:
        old_real = tl.load(at, mask=inside, other=0.0)
        old_imag = tl.load(at + 1, mask=inside, other=0.0)
        out_real += beta_real * old_real - beta_imag * old_imag
        out_imag += beta_real * old_imag + beta_imag * old_real
    tl.store(at, out_real, mask=inside)
    tl.store(at + 1, out_imag, mask=inside)


def cublasZgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D complex128 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m == 0 or n == 0 or batchCount == 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    rows, columns = (16, 64) if C.is_cuda else (min(256, triton.next_power_of_2(size)) for size in (n, m))
    tiles = triton.cdiv(n, rows) * triton.cdiv(m, columns)
    x_strides = (ldb, 1) if transb == "N" else (1, ldb)
    y_strides = (lda, 1) if transa == "N" else (1, lda)
    _gemm[(tiles * batchCount,)](
        torch.view_as_real(B), torch.view_as_real(A), torch.view_as_real(C), n, m, k, tiles,
        alpha.real, alpha.imag, beta.real, beta.imag, *x_strides, strideB, *y_strides, strideA, ldc, strideC,
        X_SIGN=-1 if transb == "C" else 1, Y_SIGN=-1 if transa == "C" else 1, READ_C=beta != 0,
        ROWS=rows, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
