"""cublasSgeam: C = alpha * op(A) + beta * op(B) in float32, matrices stored column by column.

An operand that is transposed is read as it lies in memory, by neighbouring threads along its own columns, and turned
round within the tile; so all three matrices are walked along their memory.
"""

import triton
import triton.language as tl


@triton.jit
def _operand(ptr, i, j, m, n, ld, TRANSPOSED: tl.constexpr):
    """The tile of rows i and columns j of op(matrix), whose element (i, j) lies at i + j * ld or at j + i * ld."""
    if TRANSPOSED:
        inside = (j < n)[:, None] & (i < m)[None, :]
        return tl.trans(tl.load(ptr + j[:, None] + i[None, :] * ld, mask=inside, other=0.0))
    else:
        inside = (i < m)[:, None] & (j < n)[None, :]
        return tl.load(ptr + i[:, None] + j[None, :] * ld, mask=inside, other=0.0)


@triton.jit
def _geam(
    a_ptr, b_ptr, c_ptr, m, n, alpha, beta, lda, ldb, ldc, down,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, READ_A: tl.constexpr, READ_B: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of C. A matrix with the factor 0 is not read: its NaNs do not count."""
    i = (tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = (tl.program_id(0) // down * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    c = tl.zeros((ROWS, COLUMNS), tl.float32)
    if READ_A:
        c += alpha * _operand(a_ptr, i, j, m, n, lda, TRANSPOSED_A)
    if READ_B:
        c += beta * _operand(b_ptr, i, j, m, n, ldb, TRANSPOSED_B)
    tl.store(c_ptr + i[:, None] + j[None, :] * ldc, c, mask=(i < m)[:, None] & (j < n)[None, :])


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    """A, B, C: 1-D float32 storage; C is (m, n) and only written, A is (m, n), or (n, m) where transa is not 'N'."""
    if m == 0 or n == 0:
        return
    # In the interpreter as few programs as possible.
    rows, columns = (64, 64) if C.is_cuda else (triton.next_power_of_2(min(size, 512)) for size in (m, n))
    down = triton.cdiv(m, rows)
    _geam[(down * triton.cdiv(n, columns),)](
        A, B, C, m, n, alpha, beta, lda, ldb, ldc, down,
        TRANSPOSED_A=transa != "N", TRANSPOSED_B=transb != "N", READ_A=alpha != 0, READ_B=beta != 0,
        ROWS=rows, COLUMNS=columns, num_warps=8,
    )  # fmt: skip
