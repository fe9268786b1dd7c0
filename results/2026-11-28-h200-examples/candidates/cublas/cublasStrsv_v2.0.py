"""cublasStrsv_v2: solves op(A) x = b for a triangular A, b given in x, float32.

Every case is turned into T x = b with a lower triangular T: an upper triangle is a lower one when rows and columns are
counted from the end. First the blocks on T's diagonal are inverted, all at once. Then one launch per block: its part of
x is the inverse times what is left of b there, and all rows below take off their product with it. What is left has a
buffer of its own, so that no program reads what another one writes.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _invert(
    t_ptr, b_ptr, inverse_ptr, rest_ptr, size, t_row, t_column, b_step, UNIT: tl.constexpr, BLOCK: tl.constexpr
):
    """inverse (blocks, BLOCK, BLOCK): each diagonal block of T, beyond the edge the identity; rest (size,): b."""
    own = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, column = own[:, None], own[None, :]
    at = t_ptr + row * t_row + column * t_column
    factors = tl.load(at, mask=(column < row) & (row < size), other=0.0)
    inverse = tl.where(row == column, 1.0, 0.0)
    if not UNIT:
        # Every equation is divided by its diagonal element, so that the rest is the same for both.
        # Not own * (t_row + t_column), whose sum may leave 32 bits.
        diagonal = tl.load(t_ptr + own * t_row + own * t_column, mask=own < size, other=1.0)[:, None]
        factors /= diagonal
        inverse /= diagonal
    i = tl.arange(0, BLOCK)
    for step in range(BLOCK - 1):
        factor = tl.sum(tl.where((i == step)[None, :], factors, 0.0), axis=1)[:, None]
        solved = tl.sum(tl.where((i == step)[:, None], inverse, 0.0), axis=0)[None, :]
        inverse -= factor * solved
    tl.store(inverse_ptr + row * BLOCK + i[None, :], inverse)
    tl.store(rest_ptr + own, tl.load(b_ptr + own * b_step, mask=own < size), mask=own < size)


@triton.jit
def _step(
    t_ptr, inverse_ptr, rest_ptr, x_ptr, size, first, t_row, t_column, x_step, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """x of the block at ``first``, by each program for itself, and its product taken off ROWS rows below the block."""
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)
    column = first.to(tl.int64) + j
    inverse = tl.load(inverse_ptr + (first + i) * BLOCK + j[None, :])
    left = tl.load(rest_ptr + column, mask=column < size, other=0.0)
    x = tl.sum(inverse * left[None, :], axis=1)
    if tl.program_id(0) == 0:
        tl.store(x_ptr + column * x_step, x, mask=column < size)
    row = (first + BLOCK + tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    t = tl.load(t_ptr + row[:, None] * t_row + column[None, :] * t_column, mask=(row < size)[:, None], other=0.0)
    rest = tl.load(rest_ptr + row, mask=row < size, other=0.0)
    tl.store(rest_ptr + row, rest - tl.sum(t * x[None, :], axis=1), mask=row < size)


def cublasStrsv_v2(uplo, trans, diag, n, A, lda, x, incx):
    """A: 1-D float32 storage, element (i, j) at i + j * lda, its named triangle is read; x: storage, b becomes x."""
    if n == 0:
        return
    t_row, t_column = (1, lda) if trans == "N" else (lda, 1)
    t, first, step = A, (1 - n) * incx if incx < 0 else 0, incx
    if (uplo == "L") != (trans == "N"):
        t, t_row, t_column = A[(n - 1) * (lda + 1) :], -t_row, -t_column
        first, step = first + (n - 1) * incx, -incx
    b = x[first:]
    block = max(16, min(64, triton.next_power_of_2(n)))
    rows = 64 if x.is_cuda else max(16, min(1024, triton.next_power_of_2(n)))
    blocks = triton.cdiv(n, block)
    inverse = torch.empty((blocks, block, block), dtype=A.dtype, device=A.device)
    rest = torch.empty(n, dtype=A.dtype, device=A.device)
    _invert[(blocks,)](t, b, inverse, rest, n, t_row, t_column, step, UNIT=diag == "U", BLOCK=block, num_warps=4)
    for start in range(0, n, block):
        grid = (max(1, triton.cdiv(n - start - block, rows)),)
        _step[grid](t, inverse, rest, b, n, start, t_row, t_column, step, BLOCK=block, ROWS=rows, num_warps=4)
