"""cublasSger_v2: A = alpha * x @ y^T + A in float32, A stored column by column."""

import triton
import triton.language as tl


@triton.jit
def _ger(
    x_ptr, y_ptr, a_ptr, m, n, alpha, incx, incy, x_first, y_first, lda, down,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of A; neighbouring threads have neighbouring rows, which is how A lies in memory."""
    i = (tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = (tl.program_id(0) // down * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    x = tl.load(x_ptr + x_first + i * incx, mask=i < m, other=0.0)
    y = tl.load(y_ptr + y_first + j * incy, mask=j < n, other=0.0)
    at = a_ptr + i[:, None] + j[None, :] * lda
    inside = (i < m)[:, None] & (j < n)[None, :]
    a = tl.load(at, mask=inside, other=0.0)
    tl.store(at, a + (alpha * x)[:, None] * y[None, :], mask=inside)


def cublasSger_v2(m, n, alpha, x, incx, y, incy, A, lda):
    """x, y, A: 1-D storage; a negative increment walks from the far end: element i is at (i + 1 - length) * inc.

    With alpha 0 A stays as it is, whatever x and y hold.
    """
    if m == 0 or n == 0 or alpha == 0:
        return
    x_first = (1 - m) * incx if incx < 0 else 0
    y_first = (1 - n) * incy if incy < 0 else 0
    # In the interpreter as few programs as possible.
    rows, columns = (256, 16) if A.is_cuda else (triton.next_power_of_2(min(size, 512)) for size in (m, n))
    down = triton.cdiv(m, rows)
    _ger[(down * triton.cdiv(n, columns),)](
        x, y, A, m, n, float(alpha), incx, incy, x_first, y_first, lda, down, ROWS=rows, COLUMNS=columns, num_warps=4
    )
