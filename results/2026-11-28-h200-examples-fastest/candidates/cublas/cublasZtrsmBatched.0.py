"""cublasZtrsmBatched: op(A) @ X = alpha * B or X @ op(A) = alpha * B for each of a batch, in place, complex128.

Every case is turned into T @ X = alpha * B with a lower triangular T: side 'R' is side 'L' of the transposed equation,
and an upper triangle is a lower one when rows and columns are counted from the end. Up to 16 rows, each lane of a warp
solves one column of X by substitution, 8 rows at a time. For more, a program takes some columns down through blocks of
rows, whose diagonal blocks it inverts. Only the triangle that is given is read.
"""

import triton
import triton.language as tl


@triton.jit
def _load(at, inside, WHOLE: tl.constexpr):
    """Real and imaginary parts; WHOLE: all of it is inside."""
    at = tl.expand_dims(at, -1) + tl.arange(0, 2)
    if WHOLE:
        return tl.split(tl.load(at))
    else:
        return tl.split(tl.load(at, mask=tl.expand_dims(inside, -1), other=0.0))


@triton.jit
def _store(at, real, imag, inside):
    tl.store(tl.expand_dims(at, -1) + tl.arange(0, 2), tl.join(real, imag), mask=tl.expand_dims(inside, -1))


@triton.jit
def _product(x_real, x_imag, y_real, y_imag):
    return x_real * y_real - x_imag * y_imag, x_real * y_imag + x_imag * y_real


@triton.jit
def _inverted(real, imag, CONJUGATED: tl.constexpr):
    """1 / x, or that of its conjugate, by Newton's steps from float32, for x of size 2^-60 to 2^60."""
    square = real * real + imag * imag
    factor = (1.0 / square.to(tl.float32)).to(tl.float64)
    for _ in tl.static_range(3):
        factor += factor * (1.0 - square * factor)
    return real * factor, imag * factor if CONJUGATED else -(imag * factor)


@triton.jit
def _less(
    rest, first: tl.constexpr, at, stride, x_real, x_imag, inside, CONJUGATED: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """The 8 rows ``rest``, from the one of number ``first`` on without a column of T, at ``at``, times x."""
    out = ()
    for row in tl.static_range(8):
        real, imag = rest[row]
        if row >= first:
            t_real, t_imag = _load(at + row * stride, inside[row], WHOLE)
            if CONJUGATED:
                t_imag = -t_imag
            real, imag = real - t_real * x_real + t_imag * x_imag, imag - t_real * x_imag - t_imag * x_real
        out += ((real, imag),)
    return out


@triton.jit(
    do_not_specialize=["size", "columns", "total", "t_start", "t_row", "t_column", "b_start", "b_row", "b_column"]
)
def _lanes(
    a_ptr, b_ptr, size, columns, total, alpha_real: tl.float64, alpha_imag: tl.float64,
    t_start, t_row, t_column, b_start, b_row, b_column,
    CONJUGATED: tl.constexpr, UNIT: tl.constexpr, WHOLE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """LANES of the ``total`` columns of all X; WHOLE: no lane and none of 8 rows is idle."""
    t_row, t_column = t_row.to(tl.int64) * 2, t_column.to(tl.int64) * 2
    b_row, b_column = b_row.to(tl.int64) * 2, b_column.to(tl.int64) * 2
    lane = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    live = lane < total
    batch = lane // columns
    t = tl.load(a_ptr + batch, mask=live, other=0).to(tl.pointer_type(tl.float64))
    b = tl.load(b_ptr + batch, mask=live, other=0).to(tl.pointer_type(tl.float64))
    t = tl.multiple_of(t, [16]) + t_start.to(tl.int64) * 2
    b = tl.multiple_of(b, [16]) + (b_start.to(tl.int64) * 2 + (lane - batch * columns) * b_column)
    for first in range(0, size, 8):
        t_at = t + first * t_row
        b_at = b + first * b_row
        inside, rest = (), ()
        for row in tl.static_range(8):
            inside += (live & (first + row < size),)
            real, imag = _load(b_at + row * b_row, inside[row], WHOLE)
            rest += (_product(real, imag, alpha_real, alpha_imag),)
        for step in range(0, first, 2):
            at = t_at + step * t_column
            x_real, x_imag = _load(b + step * b_row, live, WHOLE)
            y_real, y_imag = _load(b + (step + 1) * b_row, live, WHOLE)
            rest = _less(rest, 0, at, t_row, x_real, x_imag, inside, CONJUGATED, WHOLE)
            rest = _less(rest, 0, at + t_column, t_row, y_real, y_imag, inside, CONJUGATED, WHOLE)
        at = t_at + first * t_column
        solved = ()
        for row in tl.static_range(8):
            x_real, x_imag = rest[row]
            if not UNIT:
                real, imag = _load(at + row * t_row, inside[row], WHOLE)
                real, imag = _inverted(real, imag, CONJUGATED)
                x_real, x_imag = _product(x_real, x_imag, real, imag)
            rest = _less(rest, row + 1, at, t_row, x_real, x_imag, inside, CONJUGATED, WHOLE)
            solved += ((x_real, x_imag),)
            at += t_column
        for row in tl.static_range(8):
            real, imag = solved[row]
            _store(b_at + row * b_row, real, imag, inside[row])
        # These rows are loaded in the next step.
        tl.debug_barrier()


@triton.jit
def _plus(total_real, total_imag, x_real, x_imag, y_real, y_imag):
    """total + x @ y"""
    total_real = tl.dot(x_real, y_real, total_real, input_precision="ieee", out_dtype=tl.float64)
    total_real = tl.dot(0.0 - x_imag, y_imag, total_real, input_precision="ieee", out_dtype=tl.float64)
    total_imag = tl.dot(x_real, y_imag, total_imag, input_precision="ieee", out_dtype=tl.float64)
    total_imag = tl.dot(x_imag, y_real, total_imag, input_precision="ieee", out_dtype=tl.float64)
    return total_real, total_imag


@triton.jit
def _at(ptr, row, column, row_stride, column_stride, rows, columns, DOWN: tl.constexpr):
    """Where a tile lies and what of it is inside; DOWN: transposed, as it runs along memory down its columns."""
    i, j = (row[None, :], column[:, None]) if DOWN else (row[:, None], column[None, :])
    return ptr + (i * row_stride + j * column_stride) * 2, (i < rows) & (j < columns)


@triton.jit
def _tile(at, inside, DOWN: tl.constexpr):
    real, imag = _load(at, inside, False)
    if DOWN:
        real, imag = tl.trans(real), tl.trans(imag)
    return real, imag


@triton.jit
def _inverse(
    t, row, size, t_row, t_column,
    DOWN: tl.constexpr, CONJUGATED: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The inverse of a block D (I - N) on T's diagonal, N strictly lower: (I + N^8) (I + N^4) (I + N^2) (I + N) / D."""
    i = tl.arange(0, BLOCK)
    at, inside = _at(t, row, row, t_row, t_column, size, size, DOWN)
    below = i[None, :] > i[:, None] if DOWN else i[:, None] > i[None, :]
    n_real, n_imag = _tile(at, inside & below, DOWN)
    n_real, n_imag = -n_real, n_imag if CONJUGATED else -n_imag
    if not UNIT:
        # Not times t_row + t_column, which may leave 32 bits.
        at = t + (row * t_row + row * t_column) * 2
        d_real = tl.load(at, mask=row < size, other=1.0)
        d_imag = tl.load(at + 1, mask=row < size, other=0.0)
        d_real, d_imag = _inverted(d_real, d_imag, CONJUGATED)
        n_real, n_imag = _product(n_real, n_imag, d_real[:, None], d_imag[:, None])
    zero = tl.zeros((BLOCK, BLOCK), dtype=tl.float64)
    real, imag = n_real + tl.where(i[:, None] == i[None, :], 1.0, 0.0), n_imag
    for _ in tl.static_range(3):
        n_real, n_imag = _plus(zero, zero, n_real, n_imag, n_real, n_imag)
        real, imag = _plus(real, imag, n_real, n_imag, real, imag)
    if not UNIT:
        real, imag = _product(real, imag, d_real[None, :], d_imag[None, :])
    return real, imag


@triton.jit(do_not_specialize=["size", "columns", "t_start", "b_start"])
def _blocks(
    a_ptr, b_ptr, size, columns, alpha_real: tl.float64, alpha_imag: tl.float64,
    t_start, t_row, t_column, b_start, b_row, b_column,
    T_DOWN: tl.constexpr, B_DOWN: tl.constexpr, CONJUGATED: tl.constexpr, UNIT: tl.constexpr, INDEX: tl.constexpr,
    BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of X, block row by block row; what is solved is read back from where it was put."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    across = (columns - 1) // COLUMNS + 1
    batch = (tl.program_id(0) // across).to(tl.int64)
    t = tl.multiple_of(tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64)), 16) + t_start.to(tl.int64) * 2
    b = tl.multiple_of(tl.load(b_ptr + batch).to(tl.pointer_type(tl.float64)), 16) + b_start.to(tl.int64) * 2
    i = tl.arange(0, BLOCK).to(INDEX)
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS).to(INDEX)
    for block in range(tl.cdiv(size, BLOCK)):
        row = block * BLOCK + i
        at, inside = _at(b, row, column, b_row, b_column, size, columns, B_DOWN)
        real, imag = _tile(at, inside, B_DOWN)
        inverse_real, inverse_imag = _inverse(t, row, size, t_row, t_column, T_DOWN, CONJUGATED, UNIT, BLOCK)
        real, imag = _product(real, imag, alpha_real, alpha_imag)
        for before in range(block):
            step = before * BLOCK + i
            t_at, in_t = _at(t, row, step, t_row, t_column, size, size, T_DOWN)
            t_real, t_imag = _tile(t_at, in_t, T_DOWN)
            x_at, in_x = _at(b, step, column, b_row, b_column, size, columns, B_DOWN)
            x_real, x_imag = _tile(x_at, in_x, B_DOWN)
            real, imag = _plus(real, imag, 0.0 - t_real, t_imag if CONJUGATED else 0.0 - t_imag, x_real, x_imag)
        zero = tl.zeros((BLOCK, COLUMNS), dtype=tl.float64)
        real, imag = _plus(zero, zero, inverse_real, inverse_imag, real, imag)
        if B_DOWN:
            real, imag = tl.trans(real), tl.trans(imag)
        _store(at, real, imag, inside)
        # Other threads load these rows in the next step.
        tl.debug_barrier()


@triton.jit(do_not_specialize=["m", "n", "ldb"])
def _clear(b_ptr, m, n, ldb, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A tile of zeros of the real matrix of 2 m rows."""
    m = m.to(tl.int64)
    down, across = tl.cdiv(m * 2, ROWS), (n - 1) // COLUMNS + 1
    b = tl.load(b_ptr + tl.program_id(0) // (down * across)).to(tl.pointer_type(tl.float64))
    tile = tl.program_id(0) % (down * across)
    row = (tile % down).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = (tile // down).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (column < n)[:, None] & (row < m * 2)[None, :]
    tl.store(b + column[:, None] * ldb * 2 + row[None, :], tl.zeros((COLUMNS, ROWS), dtype=tl.float64), mask=inside)


def cublasZtrsmBatched(side, uplo, trans, diag, m, n, alpha, Aarray, lda, Barray, ldb, batchCount):
    """Aarray, Barray: addresses of 1-D complex128 storage, (i, j) at i + j * ld; alpha 0: only zeros are written."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha = complex(alpha)
    if alpha == 0:
        grid = (triton.cdiv(2 * m, 32) * triton.cdiv(n, 16) * batchCount,)
        _clear[grid](Barray, m, n, ldb, ROWS=32, COLUMNS=16, num_warps=4)
        return
    left, transposed = side == "L", trans != "N"
    size, columns = (m, n) if left else (n, m)
    t_start, t_row, t_column = (0, 1, lda) if transposed != left else (0, lda, 1)
    b_start, b_row, b_column = (0, 1, ldb) if left else (0, ldb, 1)
    if (uplo == "L") != (transposed != left):
        t_start, b_start = (size - 1) * (lda + 1), (size - 1) * b_row
        t_row, t_column, b_row = -t_row, -t_column, -b_row
    places = t_start, t_row, t_column, b_start, b_row, b_column
    modes = {"CONJUGATED": trans == "C", "UNIT": diag == "U"}
    if size <= 16:
        total = batchCount * columns
        _lanes[(triton.cdiv(total, 32),)](
            Aarray, Barray, size, columns, total, alpha.real, alpha.imag, *places, **modes,
            WHOLE=size % 8 == 0 and total % 32 == 0, LANES=32, num_warps=1, maxnreg=128,
        )  # fmt: skip
        return
    wide = 16 if columns <= 16 else 32 if columns <= 32 else 64
    # The largest offset, in float64s.
    small = 2 * (max(lda, ldb) + 1) * (max(size, columns) + 64) < 2**31
    _blocks[(triton.cdiv(columns, wide) * batchCount,)](
        Aarray, Barray, size, columns, alpha.real, alpha.imag, *places, **modes,
        T_DOWN=transposed != left, B_DOWN=left, INDEX=tl.int32 if small else tl.int64,
        BLOCK=16, COLUMNS=wide, num_warps=wide // 16, num_stages=2,
    )  # fmt: skip
