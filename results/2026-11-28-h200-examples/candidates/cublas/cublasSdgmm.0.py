"""cublasSdgmm: C = diag(x) @ A (mode L) or A @ diag(x) (mode R) in float32, matrices stored column by column."""

import triton
import triton.language as tl


@triton.jit
def _dgmm(
    a_ptr, x_ptr, c_ptr, m, n, lda, incx, x_first, ldc, down,
    LEFT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of C; neighbouring threads have neighbouring rows, which is how A and C lie in memory."""
    i = (tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = (tl.program_id(0) // down * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    inside = (i < m)[:, None] & (j < n)[None, :]
    a = tl.load(a_ptr + i[:, None] + j[None, :] * lda, mask=inside, other=0.0)
    if LEFT:
        factor = tl.load(x_ptr + x_first + i * incx, mask=i < m, other=0.0)[:, None]
    else:
        factor = tl.load(x_ptr + x_first + j * incx, mask=j < n, other=0.0)[None, :]
    tl.store(c_ptr + i[:, None] + j[None, :] * ldc, a * factor, mask=inside)


def cublasSdgmm(mode, m, n, A, lda, x, incx, C, ldc):
    """A, x, C: 1-D float32 storage; a negative increment walks x from its far end, with 0 all factors are x[0]."""
    if m == 0 or n == 0:
        return
    length = m if mode == "L" else n
    x_first = (1 - length) * incx if incx < 0 else 0
    # In the interpreter as few programs as possible.
    rows, columns = (256, 16) if C.is_cuda else (triton.next_power_of_2(min(size, 512)) for size in (m, n))
    down = triton.cdiv(m, rows)
    _dgmm[(down * triton.cdiv(n, columns),)](
        A, x, C, m, n, lda, incx, x_first, ldc, down, LEFT=mode == "L", ROWS=rows, COLUMNS=columns, num_warps=4
    )
