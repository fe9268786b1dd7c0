"""cublasCgemv_v2: y = alpha * op(A) @ x + beta * y, complex64.

A tile's last axis runs down a column, along memory. Where x has no gaps and tiles cover A without a rest, a program
owns rows (of a long A only some columns of them, whose sums it adds to y), or columns if A is transposed. A tall
transposed A and whatever else there may be is cut into shares along the sums, and a second kernel adds the shares up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _times(a, x, AXIS: tl.constexpr, CONJUGATED: tl.constexpr):
    """A or conj(A) times x, which lacks A's AXIS: complex64 loaded as int64, the imaginary part in the upper half."""
    a_real, a_imag = a.to(tl.int32).to(tl.float32, bitcast=True), (a >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    x_real, x_imag = x.to(tl.int32).to(tl.float32, bitcast=True), (x >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    x_real, x_imag = tl.expand_dims(x_real, AXIS), tl.expand_dims(x_imag, AXIS)
    if CONJUGATED:
        return a_real * x_real + a_imag * x_imag, a_real * x_imag - a_imag * x_real
    else:
        return a_real * x_real - a_imag * x_imag, a_real * x_imag + a_imag * x_real


@triton.jit
def _add(real, imag, a, x, AXIS: tl.constexpr, CONJUGATED: tl.constexpr):
    """Adds A times x, summed along the first axis."""
    more_real, more_imag = _times(a, x, AXIS, CONJUGATED)
    return real + tl.sum(more_real, axis=0), imag + tl.sum(more_imag, axis=0)


@triton.jit
def _end(
    i, real, imag, AXIS: tl.constexpr, inside,
    y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
):  # fmt: skip
    """y = alpha * sums + beta * y, or adds alpha * sums to y, or stores the sums, along AXIS, as y's share."""
    if AXIS is not None:
        real, imag = tl.sum(real, axis=AXIS), tl.sum(imag, axis=AXIS)
    at = y_ptr + y_first + i.to(tl.int64) * incy
    if END == "share":
        at += tl.program_id(1) * 2
    else:
        real, imag = real * alpha_real - imag * alpha_imag, real * alpha_imag + imag * alpha_real
    if END == "add":
        tl.atomic_add(at, real, mask=inside, sem="relaxed")
        tl.atomic_add(at + 1, imag, mask=inside, sem="relaxed")
    else:
        if END == "read":
            old_real, old_imag = tl.load(at, mask=inside), tl.load(at + 1, mask=inside)
            real += old_real * beta_real - old_imag * beta_imag
            imag += old_real * beta_imag + old_imag * beta_real
        tl.store(at, real, mask=inside)
        tl.store(at + 1, imag, mask=inside)


@triton.jit(do_not_specialize=["per"])
def _rows(
    a_ptr, x_ptr, columns, per, lda,
    y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag,
    END: tl.constexpr, ONE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """ROWS elements of y, or what ``per`` columns give for them; ONE: by a single tile of all columns."""
    lda *= DIVISOR
    first, begin = tl.program_id(0) * ROWS, tl.program_id(1) * per
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = column[:, None] * lda + row[None, :]
    a_ptr += begin.to(tl.int64) * lda + first
    x_ptr += begin
    real, imag = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    turns = 1 if ONE else tl.minimum(columns - begin, per) // COLUMNS
    for _ in tl.range(0, turns, num_stages=1 if ONE else 4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        real, imag = _add(real, imag, a, tl.load(x_ptr + column), 1, False)
        a_ptr += lda.to(tl.int64) * COLUMNS
        x_ptr += COLUMNS
    _end(first + row, real, imag, None, None, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _columns(
    a_ptr, x_ptr, rows, lda,
    y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
    CONJUGATED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """COLUMNS elements of y of a transposed A."""
    lda *= DIVISOR
    first = tl.program_id(0) * COLUMNS
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    at = (column * lda)[:, None] + row[None, :]
    a_ptr += first.to(tl.int64) * lda
    real, imag = tl.zeros((COLUMNS, ROWS), tl.float32), tl.zeros((COLUMNS, ROWS), tl.float32)
    for _ in tl.range(0, rows // ROWS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        more_real, more_imag = _times(a, tl.load(x_ptr + row), 0, CONJUGATED)
        real += more_real
        imag += more_imag
        a_ptr += ROWS
        x_ptr += ROWS
    _end(first + column, real, imag, 1, None, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit(do_not_specialize=["per"])
def _tall_share(
    a_ptr, x_ptr, tiles, per, lda,
    y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
    CONJUGATED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """Shares of the columns of a transposed A: sums of ``per`` tiles of PARTS * ROWS rows.

    A thread adds the parts up alone. The next tile is loaded before the sums that wait for one that is on its way.
    """
    first, begin = tl.program_id(0) * COLUMNS, tl.program_id(1) * per
    column = tl.arange(0, COLUMNS)
    row = tl.arange(0, PARTS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    lda *= DIVISOR
    at = (column * lda)[None, :, None] + row[:, None, :]
    a_ptr += first.to(tl.int64) * lda + begin * (PARTS * ROWS)
    x_ptr += begin * (PARTS * ROWS)
    real, imag = tl.zeros((COLUMNS, ROWS), tl.float32), tl.zeros((COLUMNS, ROWS), tl.float32)
    a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
    for _ in range(1, tl.minimum(tiles - begin, per)):
        real, imag = _add(real, imag, a, x, 1, CONJUGATED)
        a_ptr += PARTS * ROWS
        x_ptr += PARTS * ROWS
        a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + row)
    real, imag = _add(real, imag, a, x, 1, CONJUGATED)
    _end(first + column, real, imag, 1, None, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _share(
    a_ptr, x_ptr, length, terms, per, a_step, a_term, incx, x_first,
    y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
    CONJUGATED: tl.constexpr, BLOCK: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """BLOCK elements' sums of ``per`` terms, of any strides."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.program_id(1).to(tl.int64) * per
    real, imag = tl.zeros((BLOCK, TERMS), tl.float32), tl.zeros((BLOCK, TERMS), tl.float32)
    for start in range(0, per, TERMS):
        term = begin + start + tl.arange(0, TERMS)
        inside = (i < length)[:, None] & (term < terms)[None, :]
        a = tl.load(a_ptr + i[:, None] * a_step + term[None, :] * a_term, mask=inside, other=0)
        x = tl.load(x_ptr + x_first + term * incx, mask=term < terms, other=0)
        more_real, more_imag = _times(a, x, 0, CONJUGATED)
        real += more_real
        imag += more_imag
    _end(i, real, imag, 1, i < length, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _total(
    shares_ptr, length, count, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag,
    END: tl.constexpr, BLOCK: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Adds ``count`` shares up, always in the same order."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    share = tl.arange(0, COUNT)
    at = shares_ptr + ((i * count)[:, None] + share[None, :]) * 2
    inside = (i < length)[:, None] & (share < count)[None, :]
    real, imag = tl.load(at, mask=inside, other=0.0), tl.load(at + 1, mask=inside, other=0.0)
    _end(i, real, imag, 1, i < length, y_ptr, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END)


def _add_up(shares, length, count, *ends, **kinds):
    """Without shares y is only multiplied by beta."""
    width = triton.next_power_of_2(max(1, count))
    block = max(1, 1024 // width)
    _total[(triton.cdiv(length, block),)](
        shares, length, count, *ends, **kinds, BLOCK=block, COUNT=width, num_warps=4
    )  # fmt: skip


def _cut(terms, most, step):
    """How many shares of the sums, about ``most``, and how many terms each, up to 4096 * ``step``."""
    per = triton.cdiv(triton.cdiv(terms, max(1, most, triton.cdiv(terms, 4096 * step))), step) * step
    return triton.cdiv(terms, per), per


def cublasCgemv_v2(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D complex64 storage, element (i, j) of A at i + j * lda.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0:
        return
    alpha, beta, plain = complex(alpha), complex(beta), trans == "N"
    length, terms = (m, n) if plain else (n, m)
    out, y_first = torch.view_as_real(y), (1 - length) * incy if incy < 0 else 0
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    ends = (out, 2 * incy, 2 * y_first, *scalars)
    end = "read" if beta != 0 else "put"
    if alpha == 0:
        return _add_up(out, length, 0, *ends, END=end)

    divisor = min(4, lda & -lda)
    lead = lda // divisor
    near = (2**31 - 2**12) // lda if incx == 1 else 0  # the columns that a tile may have: its offsets take 32 bits
    wide = min(32, n & -n)
    kinds = {"DIVISOR": divisor, "num_warps": 4} | ({} if plain else {"CONJUGATED": trans == "C"})
    count, adds = 1, False
    if plain and m % 8 == 0 and m <= 1600 and n in (512, 1024) and near >= n:
        kernel, blocks, sizes = _rows, m // 8, (n, n, lead)
        kinds |= {"ONE": True, "ROWS": 8, "COLUMNS": n, "num_warps": 16}
    elif plain and m % 256 == 0 and m >= 4096 and n % 8 == 0 and n >= 256 and near >= 8:
        kernel, blocks = _rows, m // 256
        count, per = _cut(n, min(triton.cdiv(1440, blocks), n // 64), 8)
        sizes = n, per, lead
        adds = beta == 1 and abs(alpha) <= 1  # a larger alpha may make a share overflow where the whole sum does not
        kinds |= {"ONE": False, "ROWS": 256, "COLUMNS": 8}
    elif not plain and m % 256 == 0 and 1024 <= m <= 1 << 20 and n % 8 == 0 and n >= 8 * 396 and near >= 8:
        kernel, blocks, sizes = _columns, n // 8, (m, lead)
        kinds |= {"ROWS": 256, "COLUMNS": 8}
    elif not plain and m % 64 == 0 and m >= 1024 and 8 <= wide <= near and n < 200 * wide:
        kernel, blocks = _tall_share, n // wide
        count, per = _cut(m // 64, min(triton.cdiv(792, blocks), m // 256), 1)
        sizes = m // 64, per, lead
        kinds |= {"PARTS": 2, "ROWS": 32, "COLUMNS": wide}
    else:
        block = min(128, triton.next_power_of_2(m)) if plain else 2048 // min(256, triton.next_power_of_2(m))
        step = 2048 // block
        kernel, blocks = _share, triton.cdiv(length, block)
        count, per = _cut(terms, min(triton.cdiv(792, blocks), terms // (4 * step)), step)
        x_first = (1 - terms) * incx if incx < 0 else 0
        sizes = length, terms, per, *((1, lda) if plain else (lda, 1)), incx, x_first
        kinds = {"CONJUGATED": trans == "C", "BLOCK": block, "TERMS": step, "num_warps": 8}

    a, vector = A.view(torch.int64), x.view(torch.int64)
    if count == 1 or adds:
        kernel[(blocks, count)](a, vector, *sizes, *ends, END=end if count == 1 else "add", **kinds)
    else:
        shares = torch.empty(2 * length * count, dtype=torch.float32, device=y.device)
        kernel[(blocks, count)](a, vector, *sizes, shares, 2 * count, 0, *scalars, END="share", **kinds)
        _add_up(shares, length, count, *ends, END=end)
