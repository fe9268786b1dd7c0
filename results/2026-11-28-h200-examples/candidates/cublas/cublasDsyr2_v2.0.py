"""cublasDsyr2_v2: A = alpha * (x @ y^T + y @ x^T) + A in float64, one triangle, stored column by column.

A program has a tile of A whose last axis runs down a column, along memory; tiles of the other triangle end at once.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "incx", "x_first", "incy", "y_first", "lda"])
def _syr2(
    x_ptr, y_ptr, a_ptr, n, alpha: tl.float64, incx, x_first, incy, y_first, lda,
    LOWER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (n - 1) // ROWS + 1
    top = (tl.program_id(0) % down).to(tl.int64) * ROWS
    left = (tl.program_id(0) // down).to(tl.int64) * COLUMNS
    outside = top + ROWS <= left if LOWER else top >= left + COLUMNS
    if outside:
        return
    row = top + tl.arange(0, ROWS)
    column = left + tl.arange(0, COLUMNS)
    x_row = tl.load(x_ptr + x_first + row * incx, mask=row < n, other=0.0) * alpha
    y_row = tl.load(y_ptr + y_first + row * incy, mask=row < n, other=0.0) * alpha
    x_column = tl.load(x_ptr + x_first + column * incx, mask=column < n, other=0.0)
    y_column = tl.load(y_ptr + y_first + column * incy, mask=column < n, other=0.0)
    inside = (column < n)[:, None] & (row < n)[None, :]
    inside = inside & (row[None, :] >= column[:, None] if LOWER else row[None, :] <= column[:, None])
    at = a_ptr + column[:, None] * lda + row[None, :]
    a = tl.load(at, mask=inside, other=0.0)
    tl.store(at, a + (x_row[None, :] * y_column[:, None] + y_row[None, :] * x_column[:, None]), mask=inside)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasDsyr2_v2(uplo, n, alpha, x, incx, y, incy, A, lda):
    """x, y, A: 1-D storage, element (i, j) of A at i + j * lda; only the triangle ``uplo`` is read and written."""
    if n <= 0 or alpha == 0:
        return
    _syr2[(triton.cdiv(n, 256) * triton.cdiv(n, 8),)](
        x, y, A, n, float(alpha), incx, _first(n, incx), incy, _first(n, incy), lda,
        LOWER=uplo == "L", ROWS=256, COLUMNS=8, num_warps=8,
    )  # fmt: skip
