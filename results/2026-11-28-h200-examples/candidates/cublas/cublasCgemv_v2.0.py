"""cublasCgemv_v2: y = alpha * op(A) @ x + beta * y, complex64.

A is worked on as a real matrix whose row 2 i holds the real parts of row i and 2 i + 1 the imaginary ones; a tile's
last axis runs down a column of it, along memory. Plain, a program owns rows, multiplies them by Re x and by Im x, and
puts neighbouring rows together at the end. Transposed, it owns columns, which it multiplies by two interleavings of x,
for the real and for the imaginary part. Where that gives too few programs, sums are cut into parts, which a second
kernel adds up. The divisors are powers of two that divide the sizes, from which the compiler sees how wide it may
load.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _finish(at, real, imag, inside, alpha_real, alpha_imag, beta_real, beta_imag, read_y):
    """y = alpha * (real, imag) + beta * y."""
    old_real = tl.load(at, mask=inside & (read_y != 0), other=0.0)
    old_imag = tl.load(at + 1, mask=inside & (read_y != 0), other=0.0)
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    tl.store(at, out_real, mask=inside)
    tl.store(at + 1, out_imag, mask=inside)


@triton.jit(do_not_specialize=["rows", "columns", "part", "lda", "incx", "x_first", "incy", "y_first", "read_y"])
def _gemv(
    a_ptr, x_ptr, y_ptr, sum_ptr, rows, columns, part, lda, incx, x_first,
    incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, read_y,
    ROW_DIVISOR: tl.constexpr, DIVISOR: tl.constexpr, SPLIT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """ROWS real rows of y = alpha * A @ x + beta * y; SPLIT: sums over ``part`` columns go to sum_ptr."""
    program = tl.program_id(0).to(tl.int64)
    height = tl.multiple_of(rows.to(tl.int64), ROW_DIVISOR) * 2
    lda = tl.multiple_of(lda.to(tl.int64), DIVISOR) * 2
    row = program * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, columns.to(tl.int64))
    with_real = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    with_imag = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(begin, end, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        x_at = x_ptr + (x_first + column * incx) * 2
        x_real = tl.load(x_at, mask=column < end, other=0.0)
        x_imag = tl.load(x_at + 1, mask=column < end, other=0.0)
        inside = (column < end)[:, None] & (row < height)[None, :]
        a = tl.load(a_ptr + column[:, None] * lda + row[None, :], mask=inside, other=0.0)
        with_real += a * x_real[:, None]
        with_imag += a * x_imag[:, None]
    # Each pair of rows: what Re A and Im A give.
    real_real, imag_real = tl.split(tl.reshape(tl.sum(with_real, axis=0), (ROWS // 2, 2)))
    real_imag, imag_imag = tl.split(tl.reshape(tl.sum(with_imag, axis=0), (ROWS // 2, 2)))
    real = real_real - imag_imag
    imag = real_imag + imag_real
    i = program * (ROWS // 2) + tl.arange(0, ROWS // 2)
    if SPLIT:
        at = sum_ptr + tl.program_id(1).to(tl.int64) * height + i * 2
        tl.store(at, real, mask=i < rows)
        tl.store(at + 1, imag, mask=i < rows)
    else:
        y_ptr += y_first.to(tl.int64) * 2
        at = y_ptr + i * incy * 2
        _finish(at, real, imag, i < rows, alpha_real, alpha_imag, beta_real, beta_imag, read_y)


@triton.jit(do_not_specialize=["rows", "columns", "part", "lda", "incx", "x_first", "incy", "y_first", "read_y"])
def _gemv_transposed(
    a_ptr, x_ptr, y_ptr, sum_ptr, rows, columns, part, lda, incx, x_first,
    incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, read_y,
    ROW_DIVISOR: tl.constexpr, DIVISOR: tl.constexpr,
    CONJUGATED: tl.constexpr, DENSE: tl.constexpr, SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """COLUMNS elements of y = alpha * A^T @ x + beta * y; SPLIT: sums over ``part`` real rows go to sum_ptr."""
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    height = tl.multiple_of(rows.to(tl.int64), ROW_DIVISOR) * 2
    lda = tl.multiple_of(lda.to(tl.int64), DIVISOR) * 2
    begin = tl.program_id(1).to(tl.int64) * part
    odd = (tl.arange(0, ROWS) % 2) == 1
    real_sums = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    imag_sums = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(begin, tl.minimum(begin + part, height), ROWS):
        row = tl.multiple_of(start, ROWS) + tl.arange(0, ROWS)
        # x's part of the same kind as that row's, and its other part.
        x_at = row if DENSE else (x_first + (row // 2) * incx) * 2 + row % 2
        own = tl.load(x_ptr + x_at, mask=row < height, other=0.0)
        other = tl.load(x_ptr + tl.where(odd, x_at - 1, x_at + 1), mask=row < height, other=0.0)
        inside = (column < columns)[:, None] & (row < height)[None, :]
        a = tl.load(a_ptr + column[:, None] * lda + row[None, :], mask=inside, other=0.0)
        if CONJUGATED:
            real_sums += a * own[None, :]
            imag_sums += a * tl.where(odd, -other, other)[None, :]
        else:
            real_sums += a * tl.where(odd, -own, own)[None, :]
            imag_sums += a * other[None, :]
    real = tl.sum(real_sums, axis=1)
    imag = tl.sum(imag_sums, axis=1)
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * columns + column) * 2
        tl.store(at, real, mask=column < columns)
        tl.store(at + 1, imag, mask=column < columns)
    else:
        y_ptr += y_first.to(tl.int64) * 2
        at = y_ptr + column * incy * 2
        _finish(at, real, imag, column < columns, alpha_real, alpha_imag, beta_real, beta_imag, read_y)


@triton.jit(do_not_specialize=["length", "count", "incy", "y_first", "read_y"])
def _add_parts(
    sum_ptr, y_ptr, length, count, incy, y_first,
    alpha_real, alpha_imag, beta_real, beta_imag, read_y,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    imag = tl.zeros((PARTS, BLOCK), dtype=tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + (part * length)[:, None] * 2 + i[None, :] * 2
        inside = (part < count)[:, None] & (i < length)[None, :]
        real += tl.load(at, mask=inside, other=0.0)
        imag += tl.load(at + 1, mask=inside, other=0.0)
    y_ptr += y_first.to(tl.int64) * 2
    at = y_ptr + i * incy * 2
    real = tl.sum(real, axis=0)
    imag = tl.sum(imag, axis=0)
    _finish(at, real, imag, i < length, alpha_real, alpha_imag, beta_real, beta_imag, read_y)


def _divisor(n, most=16):
    """The largest power of two up to ``most`` that divides n."""
    return most if n == 0 else min(most, n & -n)


def _tile(plain, m, n):
    """Real rows and columns of a tile of A."""
    if plain:
        rows = min(256, max(16, triton.next_power_of_2(2 * m)))
        return rows, 4096 // rows
    rows = min(512, max(16, triton.next_power_of_2(2 * m)))
    return rows, min(4096 // rows, max(4, triton.next_power_of_2(n)))


def _parts(terms, step, blocks):
    """How many parts the sums are cut into, and their length: parts only where y alone gives too few blocks."""
    if blocks >= 264 or terms <= 4 * step:
        return 1, triton.cdiv(max(terms, 1), step) * step
    count = min(triton.cdiv(792, blocks), triton.cdiv(terms, 4 * step))
    part = triton.cdiv(triton.cdiv(terms, count), step) * step
    return triton.cdiv(terms, part), part


def cublasCgemv_v2(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D complex64 storage, element (i, j) of A at i + j * lda.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0:
        return
    alpha, beta, plain = complex(alpha), complex(beta), trans == "N"
    length, terms = (m, n) if plain else (n, m)
    x_first = (1 - terms) * incx if incx < 0 else 0
    y_first = (1 - length) * incy if incy < 0 else 0
    if alpha == 0:
        terms = 0
    rows, columns = _tile(plain, m, n)
    blocks = triton.cdiv(2 * m, rows) if plain else triton.cdiv(n, columns)
    count, part = _parts(terms if plain else 2 * terms, columns if plain else rows, blocks)
    out = torch.view_as_real(y)
    sums = torch.empty(2 * count * length, dtype=torch.float32, device=y.device) if count > 1 else out
    ends = (incy, y_first, alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    kinds = {"ROW_DIVISOR": _divisor(m), "DIVISOR": _divisor(lda), "SPLIT": count > 1}
    if not plain:
        kinds |= {"CONJUGATED": trans == "C", "DENSE": incx == 1}
    (_gemv if plain else _gemv_transposed)[(blocks, count)](
        torch.view_as_real(A), torch.view_as_real(x), out, sums, *((m, terms) if plain else (terms, n)),
        part, lda, incx, x_first, *ends, **kinds,
        ROWS=rows, COLUMNS=columns, num_warps=8,
    )  # fmt: skip
    if count > 1:
        _add_parts[(triton.cdiv(length, 32),)](
            sums, out, length, count, *ends,
            PARTS=min(32, triton.next_power_of_2(count)), BLOCK=32, num_warps=4,
        )  # fmt: skip
