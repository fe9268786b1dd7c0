"""cublasZtrsmBatched: op(A) @ X = alpha * B or X @ op(A) = alpha * B for each of a batch, in place, complex128.

Side 'R' is side 'L' of the transposed equation: M @ Z = alpha * R, M and Z being op(A) and X or their transposes. A
program solves some columns of Z: block of rows by block of rows it takes off what the solved blocks give, and then
eliminates within the block, row after row. Only the triangle that is given is read. Real and imaginary parts are tiles
of their own.
"""

import triton
import triton.language as tl


@triton.jit
def _at(ptr, row, column, stride, TRANSPOSED: tl.constexpr):
    """Where the element (row, column) of a matrix, or of its transpose, lies; stride in float64."""
    if TRANSPOSED:
        return ptr + row[:, None] * stride + column[None, :] * 2
    else:
        return ptr + row[:, None] * 2 + column[None, :] * stride


@triton.jit
def _divided(real, imag, by_real, by_imag):
    """A quotient; the larger part of the divisor is scaled to 1, so that its square neither overflows nor vanishes."""
    scale = tl.maximum(tl.abs(by_real), tl.abs(by_imag))
    by_real = by_real / scale
    by_imag = by_imag / scale
    square = (by_real * by_real + by_imag * by_imag) * scale
    return (real * by_real + imag * by_imag) / square, (imag * by_real - real * by_imag) / square


@triton.jit(do_not_specialize=["order", "sides", "lda", "ldb", "unit", "sign"])
def _solve(
    a_ptr, b_ptr, order, sides, alpha_real: tl.float64, alpha_imag: tl.float64, lda, ldb, unit, sign,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr, UPPER: tl.constexpr,
    SIZE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS of the ``sides`` columns of Z, by blocks of SIZE rows; sign: -1 conjugates A."""
    lda, ldb = lda.to(tl.int64) * 2, ldb.to(tl.int64) * 2
    across = tl.cdiv(sides, COLUMNS)
    batch = (tl.program_id(0) // across).to(tl.int64)
    a_ptr = tl.multiple_of(tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64)), 16)
    b_ptr = tl.multiple_of(tl.load(b_ptr + batch).to(tl.pointer_type(tl.float64)), 16)
    i = tl.arange(0, SIZE)
    column = (tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS).to(tl.int64)
    blocks = tl.cdiv(order, SIZE)
    for step in range(blocks):
        block = blocks - 1 - step if UPPER else step
        row = block * SIZE + i.to(tl.int64)
        z_at = _at(b_ptr, row, column, ldb, B_TRANSPOSED)
        inside = (row < order)[:, None] & (column < sides)[None, :]
        b_real = tl.load(z_at, mask=inside, other=0.0)
        b_imag = tl.load(z_at + 1, mask=inside, other=0.0)
        # What the solved blocks give; of the real part the two kinds of products apart.
        real_real = tl.zeros((SIZE, COLUMNS), dtype=tl.float64)
        imag_imag = tl.zeros((SIZE, COLUMNS), dtype=tl.float64)
        mixed = tl.zeros((SIZE, COLUMNS), dtype=tl.float64)
        for earlier in range(step):
            solved = (blocks - 1 - earlier if UPPER else earlier) * SIZE + i.to(tl.int64)
            m_at = _at(a_ptr, row, solved, lda, A_TRANSPOSED)
            in_m = (row < order)[:, None] & (solved < order)[None, :]
            m_real = tl.load(m_at, mask=in_m, other=0.0)
            m_imag = tl.load(m_at + 1, mask=in_m, other=0.0) * sign
            x_at = _at(b_ptr, solved, column, ldb, B_TRANSPOSED)
            in_x = (solved < order)[:, None] & (column < sides)[None, :]
            x_real = tl.load(x_at, mask=in_x, other=0.0)
            x_imag = tl.load(x_at + 1, mask=in_x, other=0.0)
            real_real = tl.dot(m_real, x_real, real_real, input_precision="ieee", out_dtype=tl.float64)
            imag_imag = tl.dot(m_imag, x_imag, imag_imag, input_precision="ieee", out_dtype=tl.float64)
            mixed = tl.dot(m_real, x_imag, mixed, input_precision="ieee", out_dtype=tl.float64)
            mixed = tl.dot(m_imag, x_real, mixed, input_precision="ieee", out_dtype=tl.float64)
        z_real = (b_real * alpha_real - b_imag * alpha_imag) - (real_real - imag_imag)
        z_imag = (b_real * alpha_imag + b_imag * alpha_real) - mixed
        for turn in tl.static_range(SIZE):
            pivot = SIZE - 1 - turn if UPPER else turn
            rest = i < pivot if UPPER else i > pivot
            k = block.to(tl.int64) * SIZE + pivot
            line = a_ptr + row * lda + k * 2 if A_TRANSPOSED else a_ptr + row * 2 + k * lda
            needed = rest & (row < order) & (k < order)
            factor_real = tl.load(line, mask=needed, other=0.0)[:, None]
            factor_imag = (tl.load(line + 1, mask=needed, other=0.0) * sign)[:, None]
            divides = (unit == 0) & (k < order)
            d_real = tl.load(a_ptr + k * (lda + 2), mask=divides, other=1.0)
            d_imag = tl.load(a_ptr + k * (lda + 2) + 1, mask=divides, other=0.0) * sign
            hit = (i == pivot)[:, None]
            x_real = tl.sum(tl.where(hit, z_real, 0.0), axis=0)
            x_imag = tl.sum(tl.where(hit, z_imag, 0.0), axis=0)
            x_real, x_imag = _divided(x_real, x_imag, d_real, d_imag)
            x_real, x_imag = x_real[None, :], x_imag[None, :]
            less_real = z_real - (factor_real * x_real - factor_imag * x_imag)
            less_imag = z_imag - (factor_real * x_imag + factor_imag * x_real)
            z_real = tl.where(hit, x_real, tl.where(rest[:, None], less_real, z_real))
            z_imag = tl.where(hit, x_imag, tl.where(rest[:, None], less_imag, z_imag))
        tl.store(z_at, z_real, mask=inside)
        tl.store(z_at + 1, z_imag, mask=inside)
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
    right = side == "R"
    order, sides = (n, m) if right else (m, n)
    transposed = (trans != "N") != right
    _solve[(triton.cdiv(sides, 16) * batchCount,)](
        Aarray, Barray, order, sides, alpha.real, alpha.imag, lda, ldb, int(diag == "U"),
        -1.0 if trans == "C" else 1.0, A_TRANSPOSED=transposed, B_TRANSPOSED=right,
        UPPER=(uplo == "U") != transposed, SIZE=16, COLUMNS=16, num_warps=1, num_stages=2,
    )  # fmt: skip
