"""cublasCgeru_v2: A = alpha * x @ y^T + A, complex64, stored column by column.

A is worked on as a real matrix whose row 2 i holds the real parts of row i and 2 i + 1 the imaginary ones. With
t = alpha * x_i, t * y_j is (Re t, Im t) * Re y_j + (-Im t, Re t) * Im y_j: two real updates of rank 1, whose column
vectors lie as a column of A does. A tile's last axis runs down a column, along memory.
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "x_first", "y_first", "down"])
def _ger(
    x_ptr, y_ptr, a_ptr, rows, n, alpha_real, alpha_imag, incx, x_first, incy, y_first, stride, down,
    DIVISOR: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of the real matrix of ``rows`` rows and n columns, which are ``stride``, a multiple of DIVISOR, apart."""
    row = (tl.program_id(0) % down).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tl.program_id(0) // down).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    odd = row % 2 == 1
    x_at = x_ptr + (x_first + row // 2 * incx) * 2
    x_real = tl.load(x_at, mask=row < rows, other=0.0)
    x_imag = tl.load(x_at + 1, mask=row < rows, other=0.0)
    t_real = x_real * alpha_real - x_imag * alpha_imag
    t_imag = x_real * alpha_imag + x_imag * alpha_real
    y_at = y_ptr + (y_first + column * incy) * 2
    y_real = tl.load(y_at, mask=column < n, other=0.0)
    y_imag = tl.load(y_at + 1, mask=column < n, other=0.0)
    with_real = tl.where(odd, t_imag, t_real)
    with_imag = tl.where(odd, t_real, -t_imag)
    inside = (column < n)[:, None] & (row < rows)[None, :]
    at = a_ptr + column[:, None] * tl.multiple_of(stride.to(tl.int64), DIVISOR) + row[None, :]
    a = tl.load(at, mask=inside, other=0.0)
    product = with_real[None, :] * y_real[:, None] + with_imag[None, :] * y_imag[:, None]
    tl.store(at, a + product, mask=inside)


def cublasCgeru_v2(m, n, alpha, x, incx, y, incy, A, lda):
    """x, y, A: 1-D storage, element (i, j) of A at i + j * lda; a negative inc walks its vector from the far end."""
    alpha = complex(alpha)
    if m <= 0 or n <= 0 or alpha == 0:
        return
    x_first = (1 - m) * incx if incx < 0 else 0
    y_first = (1 - n) * incy if incy < 0 else 0
    rows = min(1024, max(16, triton.next_power_of_2(2 * m)))
    area = 8192 if m * n >= 1 << 23 else 4096
    columns = min(area // rows, max(1, triton.next_power_of_2(n)))
    down = triton.cdiv(2 * m, rows)
    # 2 m and 2 lda are made here: in the kernel they could leave 32 bits.
    _ger[(down * triton.cdiv(n, columns),)](
        torch.view_as_real(x), torch.view_as_real(y), torch.view_as_real(A), 2 * m, n, alpha.real, alpha.imag,
        incx, x_first, incy, y_first, 2 * lda, down,
        DIVISOR=16 if lda % 8 == 0 else 8 if lda % 4 == 0 else 4 if lda % 2 == 0 else 2,
        ROWS=rows, COLUMNS=columns, num_warps=8,
    )  # fmt: skip
