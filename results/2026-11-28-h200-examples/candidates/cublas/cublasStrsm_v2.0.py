"""cublasStrsm_v2: solves op(A) X = alpha B or X op(A) = alpha B for a triangular A and puts X into B, float32.

Every case is turned into T X = alpha B with a lower triangular T: X op(A) = B is op(A)^T X^T = B^T, and an upper
triangle is a lower one when rows and columns are counted from the end. First the blocks on T's diagonal are inverted,
all at once; then each program takes some columns of X down through the block rows.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _invert(t_ptr, inverse_ptr, size, t_row, t_column, UNIT: tl.constexpr, BLOCK: tl.constexpr):
    """inverse (blocks, BLOCK, BLOCK): each diagonal block of T, its part beyond the edge taken as the identity."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inverse = tl.where(i == j, 1.0, 0.0)
    for step in range(BLOCK):
        below = (i > step) & (first + i < size)
        factor = tl.load(t_ptr + (first + i) * t_row + (first + step) * t_column, mask=below, other=0.0)
        row = tl.sum(tl.where(i == step, inverse, 0.0), axis=0)[None, :]
        if not UNIT:
            # Not times t_row + t_column, which may leave 32 bits.
            at = t_ptr + (first + step) * t_row + (first + step) * t_column
            row /= tl.load(at, mask=first + step < size, other=1.0)
        inverse = tl.where(i == step, row, inverse - factor * row)
    tl.store(inverse_ptr + (first + i) * BLOCK + j, inverse)


@triton.jit
def _solve(
    t_ptr, inverse_ptr, b_ptr, size, columns, alpha, t_row, t_column, b_row, b_column,
    READ: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of X, block row by block row; what is solved is read back from where it was put."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    column = (tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    for first in range(0, size, BLOCK):
        row = (first + i).to(tl.int64)
        at = b_ptr + row * b_row + column * b_column
        inside = (row < size) & (column < columns)
        if READ:
            rest = tl.load(at, mask=inside, other=0.0) * alpha
            for before in range(0, first, BLOCK):
                step = (before + j).to(tl.int64)
                t = tl.load(t_ptr + row * t_row + step * t_column, mask=row < size, other=0.0)
                solved_at = b_ptr + (before + i).to(tl.int64) * b_row + column * b_column
                solved = tl.load(solved_at, mask=column < columns, other=0.0)
                rest -= tl.dot(t, solved, input_precision="ieee")
            inverse = tl.load(inverse_ptr + row * BLOCK + j)
            x = tl.dot(inverse, rest, input_precision="ieee")
        else:
            x = tl.zeros((BLOCK, COLUMNS), tl.float32)
        tl.debug_barrier()
        tl.store(at, x, mask=inside)
        tl.debug_barrier()


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    """A, B: 1-D float32 storage, element (i, j) at i + j * ld; only A's named triangle is read, B becomes X."""
    if m == 0 or n == 0:
        return
    left, transposed = side == "L", trans != "N"
    size, columns = (m, n) if left else (n, m)
    t_row, t_column = (1, lda) if transposed != left else (lda, 1)
    b_row, b_column = (1, ldb) if left else (ldb, 1)
    t, b = A, B
    lower = (uplo == "L") == (transposed != left)
    if not lower:
        t, b = A[(size - 1) * (lda + 1) :], B[(size - 1) * b_row :]
        t_row, t_column, b_row = -t_row, -t_column, -b_row
    block = max(16, min(64, triton.next_power_of_2(size)))
    blocks = triton.cdiv(size, block)
    inverse = torch.empty((blocks, block, block), dtype=A.dtype, device=A.device)
    if alpha != 0:
        _invert[(blocks,)](t, inverse, size, t_row, t_column, UNIT=diag == "U", BLOCK=block)
    wide = 16 if B.is_cuda else max(16, min(1024, triton.next_power_of_2(columns)))
    _solve[(triton.cdiv(columns, wide),)](
        t, inverse, b, size, columns, float(alpha), t_row, t_column, b_row, b_column,
        READ=alpha != 0, BLOCK=block, COLUMNS=wide, num_warps=2,
    )  # fmt: skip
