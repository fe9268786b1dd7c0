"""cublasDtrsmBatched: op(A) @ X = alpha * B or X @ op(A) = alpha * B for each of a batch, in place, float64.

Side 'R' is side 'L' of the transposed equation: M @ Z = alpha * R, M and Z being op(A) and X or their transposes. A
program solves some columns of Z: block of rows by block of rows it takes off what the solved blocks give, and then
eliminates within the block, row after row. Only the triangle that is given is read.
"""

import triton
import triton.language as tl


@triton.jit
def _at(ptr, row, column, stride, TRANSPOSED: tl.constexpr):
    """Where the element (row, column) of a matrix, or of its transpose, lies."""
    if TRANSPOSED:
        return ptr + row[:, None] * stride + column[None, :]
    else:
        return ptr + row[:, None] + column[None, :] * stride


@triton.jit(do_not_specialize=["order", "sides", "lda", "ldb", "unit"])
def _solve(
    a_ptr, b_ptr, order, sides, alpha: tl.float64, lda, ldb, unit,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr, UPPER: tl.constexpr,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS of the ``sides`` columns of Z, by blocks of SIZE rows."""
    lda, ldb = lda.to(tl.int64), ldb.to(tl.int64)
    # Not tl.cdiv, whose sum may leave 32 bits.
    across = (sides - 1) // COLUMNS + 1
    batch = (tl.program_id(0) // across).to(tl.int64)
    a_ptr = tl.multiple_of(tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64)), 8)
    b_ptr = tl.multiple_of(tl.load(b_ptr + batch).to(tl.pointer_type(tl.float64)), 8)
    i = tl.arange(0, SIZE)
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64)
    blocks = tl.cdiv(order, SIZE)
    for step in range(blocks):
        block = blocks - 1 - step if UPPER else step
        row = block * SIZE + i.to(tl.int64)
        z_at = _at(b_ptr, row, column, ldb, B_TRANSPOSED)
        inside = (row < order)[:, None] & (column < sides)[None, :]
        z = tl.load(z_at, mask=inside, other=0.0) * alpha
        given = tl.zeros((SIZE, COLUMNS), dtype=tl.float64)
        for earlier in range(step):
            solved = (blocks - 1 - earlier if UPPER else earlier) * SIZE + i.to(tl.int64)
            m_at = _at(a_ptr, row, solved, lda, A_TRANSPOSED)
            m = tl.load(m_at, mask=(row < order)[:, None] & (solved < order)[None, :], other=0.0)
            x_at = _at(b_ptr, solved, column, ldb, B_TRANSPOSED)
            x = tl.load(x_at, mask=(solved < order)[:, None] & (column < sides)[None, :], other=0.0)
            given = tl.dot(m, x, given, input_precision="ieee", out_dtype=tl.float64)
        z = z - given
        for turn in tl.static_range(SIZE):
            pivot = SIZE - 1 - turn if UPPER else turn
            rest = i < pivot if UPPER else i > pivot
            k = block.to(tl.int64) * SIZE + pivot
            line = a_ptr + row * lda + k if A_TRANSPOSED else a_ptr + row + k * lda
            factor = tl.load(line, mask=rest & (row < order) & (k < order), other=0.0)
            diagonal = tl.load(a_ptr + k * (lda + 1), mask=(unit == 0) & (k < order), other=1.0)
            hit = (i == pivot)[:, None]
            x = tl.sum(tl.where(hit, z, 0.0), axis=0) / diagonal
            reduced = tl.where(rest[:, None], z - factor[:, None] * x[None, :], z)
            z = tl.where(hit, x[None, :], reduced)
        tl.store(z_at, z, mask=inside)
        # Other threads load these rows in the next step.
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "n", "ldb"])
def _clear(b_ptr, m, n, ldb, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    b = tl.load(b_ptr + tl.program_id(0) // (down * across)).to(tl.pointer_type(tl.float64))
    tile = tl.program_id(0) % (down * across)
    row = (tile % down).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tile // down).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (column < n)[:, None] & (row < m)[None, :]
    tl.store(b + column[:, None] * ldb + row[None, :], tl.zeros((COLUMNS, ROWS), dtype=tl.float64), mask=inside)


def cublasDtrsmBatched(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    """Aarray, Barray: addresses of 1-D float64 storage, (i, j) at i + j * ld; alpha 0: only zeros are written."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        grid = (triton.cdiv(m, 32) * triton.cdiv(n, 16) * batchCount,)
        _clear[grid](Barray, m, n, ldb, ROWS=32, COLUMNS=16, num_warps=4)
        return
    right = side == "R"
    order, sides = (n, m) if right else (m, n)
    transposed = (trans != "N") != right
    columns = 32 if sides > 16 else 16
    _solve[(triton.cdiv(sides, columns) * batchCount,)](
        Aarray, Barray, order, sides, float(alpha), lda, ldb, int(diag == "U"),
        A_TRANSPOSED=transposed, B_TRANSPOSED=right, UPPER=(uplo == "U") != transposed, SIZE=16, COLUMNS=columns,
        num_warps=1, num_stages=2,
    )  # fmt: skip
