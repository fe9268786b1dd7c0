"""cublasDtrsmBatched: op(A) @ X = alpha * B or X @ op(A) = alpha * B for each of a batch, in place, float64.

Every case is turned into T @ X = alpha * B with a lower triangular T: side 'R' is side 'L' of the transposed equation,
and an upper triangle is a lower one when rows and columns are counted from the end. Up to 64 rows, each lane of a warp
solves one column of X by substitution, 8 rows at a time. For more, blocks on T's diagonal are inverted first, and then
a program takes some columns down through the blocks of rows. Only the triangle that is given is read.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load(at, inside, WHOLE: tl.constexpr):
    """WHOLE: all of it is inside."""
    if WHOLE:
        return tl.load(at)
    else:
        return tl.load(at, mask=inside, other=0)


@triton.jit
def _less(rest, first: tl.constexpr, at, stride, x, inside, WHOLE: tl.constexpr):
    """The 8 rows ``rest``, from the one of number ``first`` on without a column of T, at ``at``, times x."""
    out = ()
    for row in tl.static_range(8):
        if row < first:
            out += (rest[row],)
        else:
            out += (rest[row] - _load(at + row * stride, inside[row], WHOLE) * x,)
    return out


@triton.jit(
    do_not_specialize=["size", "columns", "total", "t_start", "t_row", "t_column", "b_start", "b_row", "b_column"]
)
def _lanes(
    a_ptr, b_ptr, size, columns, total, alpha: tl.float64, t_start, t_row, t_column, b_start, b_row, b_column,
    UNIT: tl.constexpr, WHOLE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """LANES of the ``total`` columns of all X; WHOLE: no lane and none of 8 rows is idle."""
    t_row, t_column = t_row.to(tl.int64), t_column.to(tl.int64)
    b_row, b_column = b_row.to(tl.int64), b_column.to(tl.int64)
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    live = lane < total
    batch = lane // columns
    t = _load(a_ptr + batch, live, WHOLE).to(tl.pointer_type(tl.float64)) + t_start
    b = _load(b_ptr + batch, live, WHOLE).to(tl.pointer_type(tl.float64))
    b += b_start + (lane - batch * columns) * b_column
    for first in range(0, size, 8):
        t_at = t + first * t_row
        b_at = b + first * b_row
        inside, rest = (), ()
        for row in tl.static_range(8):
            inside += (live & (first + row < size),)
            rest += (_load(b_at + row * b_row, inside[row], WHOLE) * alpha,)
        for step in range(0, first, 2):
            at = t_at + step * t_column
            x = _load(b + step * b_row, live, WHOLE)
            y = _load(b + (step + 1) * b_row, live, WHOLE)
            rest = _less(rest, 0, at, t_row, x, inside, WHOLE)
            rest = _less(rest, 0, at + t_column, t_row, y, inside, WHOLE)
        at = t_at + first * t_column
        solved = ()
        for row in tl.static_range(8):
            x = rest[row]
            if not UNIT:
                x /= _load(at + row * t_row, inside[row], WHOLE)
            rest = _less(rest, row + 1, at, t_row, x, inside, WHOLE)
            solved += (x,)
            at += t_column
        for row in tl.static_range(8):
            tl.store(b_at + row * b_row, solved[row], mask=inside[row])
        # These rows are loaded in the next step.
        tl.debug_barrier()


@triton.jit(do_not_specialize=["size", "blocks", "t_start", "t_row", "t_column"])
def _invert(
    a_ptr, inverse_ptr, size, blocks, t_start, t_row, t_column, UNIT: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """inverse (batch, blocks, BLOCK, BLOCK): each diagonal block of T, beyond the edge the identity."""
    t_row, t_column = t_row.to(tl.int64), t_column.to(tl.int64)
    t = tl.load(a_ptr + tl.program_id(0) // blocks).to(tl.pointer_type(tl.float64)) + t_start
    first = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK
    i = tl.arange(0, BLOCK)
    row = first + i
    inverse = tl.where(i[:, None] == i[None, :], 1.0, 0.0).to(tl.float64)
    for step in tl.static_range(BLOCK):
        column = first + step
        below = i > step
        factor = tl.load(t + row * t_row + column * t_column, mask=below & (row < size), other=0.0)[:, None]
        current = (i == step)[:, None]
        solved = tl.sum(tl.where(current, inverse, 0.0), axis=0)[None, :]
        if not UNIT:
            solved /= tl.load(t + column * (t_row + t_column), mask=column < size, other=1.0)
        inverse = tl.where(current, solved, tl.where(below[:, None], inverse - factor * solved, inverse))
    at = inverse_ptr + tl.program_id(0).to(tl.int64) * (BLOCK * BLOCK)
    tl.store(at + i[:, None] * BLOCK + i[None, :], inverse)


@triton.jit(do_not_specialize=["size", "columns", "t_start", "b_start"])
def _blocks(
    a_ptr, b_ptr, inverse_ptr, size, columns, alpha: tl.float64, t_start, t_row, t_column, b_start, b_row, b_column,
    BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of X, block row by block row; what is solved is read back from where it was put."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    across = (columns - 1) // COLUMNS + 1
    batch = (tl.program_id(0) // across).to(tl.int64)
    t = tl.multiple_of(tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64)), 8) + t_start
    b = tl.multiple_of(tl.load(b_ptr + batch).to(tl.pointer_type(tl.float64)), 8) + b_start
    i = tl.arange(0, BLOCK).to(tl.int64)
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64)
    b += column[None, :] * b_column
    blocks = tl.cdiv(size, BLOCK)
    for block in range(blocks):
        row = block * BLOCK + i
        inside = (row < size)[:, None] & (column < columns)[None, :]
        rest = tl.load(b + row[:, None] * b_row, mask=inside, other=0.0) * alpha
        given = tl.zeros((BLOCK, COLUMNS), dtype=tl.float64)
        for before in range(block):
            step = before * BLOCK + i
            t_at = t + row[:, None] * t_row + step[None, :] * t_column
            left = tl.load(t_at, mask=(row < size)[:, None], other=0.0)
            x = tl.load(b + step[:, None] * b_row, mask=(column < columns)[None, :], other=0.0)
            given = tl.dot(left, x, given, input_precision="ieee", out_dtype=tl.float64)
        at = inverse_ptr + (batch * blocks + block) * (BLOCK * BLOCK)
        inverse = tl.load(at + tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :])
        x = tl.dot(inverse, rest - given, input_precision="ieee", out_dtype=tl.float64)
        tl.store(b + row[:, None] * b_row, x, mask=inside)
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
    left, transposed, unit = side == "L", trans != "N", diag == "U"
    size, columns = (m, n) if left else (n, m)
    t_start, t_row, t_column = (0, 1, lda) if transposed != left else (0, lda, 1)
    b_start, b_row, b_column = (0, 1, ldb) if left else (0, ldb, 1)
    if (uplo == "L") != (transposed != left):
        t_start, b_start = (size - 1) * (lda + 1), (size - 1) * b_row
        t_row, t_column, b_row = -t_row, -t_column, -b_row
    places = t_start, t_row, t_column, b_start, b_row, b_column
    if size <= 64:
        total = batchCount * columns
        _lanes[(triton.cdiv(total, 32),)](
            Aarray, Barray, size, columns, total, float(alpha), *places,
            UNIT=unit, WHOLE=size % 8 == 0 and total % 32 == 0, LANES=32, num_warps=1,
        )  # fmt: skip
        return
    block, wide = 16, 32 if columns > 16 else 16
    blocks = triton.cdiv(size, block)
    inverse = torch.empty(batchCount * blocks * block * block, dtype=torch.float64, device=Barray.device)
    _invert[(batchCount * blocks,)](Aarray, inverse, size, blocks, *places[:3], UNIT=unit, BLOCK=block, num_warps=1)
    _blocks[(triton.cdiv(columns, wide) * batchCount,)](
        Aarray, Barray, inverse, size, columns, float(alpha), *places,
        BLOCK=block, COLUMNS=wide, num_warps=1, num_stages=3,
    )  # fmt: skip
