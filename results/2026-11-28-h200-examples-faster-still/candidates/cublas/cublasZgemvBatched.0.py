"""cublasZgemvBatched: y = alpha * op(A) @ x + beta * y for each of a batch behind arrays of pointers, complex128.

A is worked on as a real matrix whose row 2 i holds the real parts of row i and 2 i + 1 the imaginary ones; a tile's
last axis runs down a column of it, along memory. Where x has no gaps and tiles cover A without a rest, a program owns
rows (in small batches only some columns of them, whose sums it adds to y), or columns if A is transposed. Whatever else
there may be is cut into shares along the sums, and a second kernel adds the shares up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _rows(a_ptr, x_ptr, columns, lda, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sums of ROWS real rows: A times Re x and times Im x, then neighbouring rows are put together."""
    column = tl.arange(0, COLUMNS)
    at = column[:, None] * lda + tl.arange(0, ROWS)[None, :]
    with_real, with_imag = tl.zeros((ROWS,), tl.float64), tl.zeros((ROWS,), tl.float64)
    for _ in tl.range(0, columns // COLUMNS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        x_real, x_imag = tl.load(x_ptr + column * 2), tl.load(x_ptr + column * 2 + 1)
        with_real += tl.sum(a * x_real[:, None], axis=0)
        with_imag += tl.sum(a * x_imag[:, None], axis=0)
        a_ptr += lda.to(tl.int64) * COLUMNS
        x_ptr += COLUMNS * 2
    real_real, imag_real = tl.split(tl.reshape(with_real, (ROWS // 2, 2)))
    real_imag, imag_imag = tl.split(tl.reshape(with_imag, (ROWS // 2, 2)))
    return real_real - imag_imag, real_imag + imag_real


@triton.jit
def _columns(a_ptr, x_ptr, rows, lda, CONJUGATED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sums of COLUMNS columns: each real row by x's part of the same kind, and by the other part."""
    row = tl.arange(0, ROWS)
    at = (tl.arange(0, COLUMNS) * lda)[:, None] + row[None, :]
    real, imag = tl.zeros((COLUMNS, ROWS), tl.float64), tl.zeros((COLUMNS, ROWS), tl.float64)
    for _ in tl.range(0, rows // ROWS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        real += a * tl.load(x_ptr + row)[None, :]
        imag += a * tl.load(x_ptr + (row ^ 1))[None, :]
        a_ptr += ROWS
        x_ptr += ROWS
    odd = (row % 2 == 1)[None, :]
    if CONJUGATED:
        imag = tl.where(odd, -imag, imag)
    else:
        real = tl.where(odd, -real, real)
    return tl.sum(real, axis=1), tl.sum(imag, axis=1)


@triton.jit
def _end(i, real, imag, inside, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr):
    """y = alpha * sums + beta * y, or adds alpha * sums to y, or stores the sums as y's share."""
    at = y_ptr + i.to(tl.int64) * incy
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
def _gemv(
    a_ptr, x_ptr, blocks, terms, per, lda,
    y_ptr, incy, y_first, alpha_real: tl.float64, alpha_imag: tl.float64,
    beta_real: tl.float64, beta_imag: tl.float64, END: tl.constexpr,
    PLAIN: tl.constexpr, CONJUGATED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr,
):  # fmt: skip
    """ROWS real rows of y, or what ``per`` columns give for them; or COLUMNS elements of y of a transposed A."""
    lda *= DIVISOR
    batch, block = (tl.program_id(0) // blocks).to(tl.int64), tl.program_id(0) % blocks
    SIZE: tl.constexpr = ROWS // 2 if PLAIN else COLUMNS
    a_ptr = tl.multiple_of(tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64)), 16)
    x_ptr = tl.multiple_of(tl.load(x_ptr + batch).to(tl.pointer_type(tl.float64)), 16)
    if END == "share":
        y_ptr += batch * blocks * SIZE * incy
    else:
        y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float64)) + y_first
    if PLAIN:
        begin = tl.program_id(1) * per
        a_ptr += begin.to(tl.int64) * lda + block * ROWS
        real, imag = _rows(a_ptr, x_ptr + begin * 2, tl.minimum(terms - begin, per), lda, ROWS, COLUMNS)
    else:
        a_ptr += (block * COLUMNS).to(tl.int64) * lda
        real, imag = _columns(a_ptr, x_ptr, terms * 2, lda, CONJUGATED, ROWS, COLUMNS)
    i = block * SIZE + tl.arange(0, SIZE)
    _end(i, real, imag, None, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _share(
    a_ptr, x_ptr, blocks, length, terms, per, a_step, a_term, incx, x_first,
    y_ptr, incy, y_first, alpha_real: tl.float64, alpha_imag: tl.float64,
    beta_real: tl.float64, beta_imag: tl.float64, END: tl.constexpr,
    CONJUGATED: tl.constexpr, BLOCK: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """BLOCK elements' sums of ``per`` terms, of any strides."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    a_ptr = tl.load(a_ptr + batch).to(tl.pointer_type(tl.float64))
    x_ptr = tl.load(x_ptr + batch).to(tl.pointer_type(tl.float64)) + x_first
    if END == "share":
        y_ptr += batch * length * incy
    else:
        y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float64)) + y_first
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.program_id(1).to(tl.int64) * per
    real, imag = tl.zeros((BLOCK, TERMS), tl.float64), tl.zeros((BLOCK, TERMS), tl.float64)
    for start in range(0, per, TERMS):
        term = begin + start + tl.arange(0, TERMS)
        inside = (i < length)[:, None] & (term < terms)[None, :]
        at = a_ptr + i[:, None] * a_step + term[None, :] * a_term
        a_real, a_imag = tl.load(at, mask=inside, other=0.0), tl.load(at + 1, mask=inside, other=0.0)
        a_imag = -a_imag if CONJUGATED else a_imag
        at = x_ptr + term[None, :] * incx
        inside = (term < terms)[None, :]
        x_real, x_imag = tl.load(at, mask=inside, other=0.0), tl.load(at + 1, mask=inside, other=0.0)
        real += a_real * x_real - a_imag * x_imag
        imag += a_real * x_imag + a_imag * x_real
    real, imag = tl.sum(real, axis=1), tl.sum(imag, axis=1)
    _end(i, real, imag, i < length, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _total(
    shares_ptr, blocks, length, count,
    y_ptr, incy, y_first, alpha_real: tl.float64, alpha_imag: tl.float64,
    beta_real: tl.float64, beta_imag: tl.float64, END: tl.constexpr,
    BLOCK: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """Adds ``count`` shares up, always in the same order."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    share = tl.arange(0, COUNT)
    at = shares_ptr + ((batch * length + i)[:, None] * count + share[None, :]) * 2
    inside = (i < length)[:, None] & (share < count)[None, :]
    real = tl.sum(tl.load(at, mask=inside, other=0.0), axis=1)
    imag = tl.sum(tl.load(at + 1, mask=inside, other=0.0), axis=1)
    y_ptr = tl.load(y_ptr + batch).to(tl.pointer_type(tl.float64)) + y_first
    _end(i, real, imag, i < length, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


def _tile(plain, m, n, batches, near):
    """Real rows and columns of a tile and its warps, if tiles of at most ``near`` columns cover A."""
    if plain and m == 64 and n % 8 == 0 and batches >= 528 and near >= 8:
        return 128, 8, 2
    if plain and m % 128 == 0 and m >= 512 and n % 8 == 0 and n >= 256 and near >= 8:
        return 256, 8, 4
    rows, columns = (256, 8) if m >= 512 else (64, 32)
    if not plain and 2 * m % rows == 0 and m >= 128 and n % columns == 0 and n // columns * batches >= 396:
        return (rows, columns, 4) if near >= columns else None
    return None


def _cut(terms, most, step):
    """How many shares of the sums, about ``most``, and how many terms each, up to 4096 * ``step``."""
    count = max(1, most, triton.cdiv(terms, 4096 * step))
    per = max(1, triton.cdiv(triton.cdiv(terms, count), step)) * step
    return max(1, triton.cdiv(terms, per)), per


def cublasZgemvBatched(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    """Aarray, xarray, yarray: addresses of 1-D complex128 storage, element (i, j) of A at i + j * lda.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta, plain = complex(alpha), complex(beta), trans == "N"
    length, terms = (m, n) if plain else (n, m)
    x_first = (1 - terms) * incx if incx < 0 else 0
    y_first = (1 - length) * incy if incy < 0 else 0
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    ends = (yarray, 2 * incy, 2 * y_first, *scalars)
    end = "read" if beta != 0 else "put"
    if alpha == 0:
        terms = 0

    # The columns that a tile may have: its offsets take 32 bits.
    near = (2**30 - 2**12) // lda if incx == 1 and 0 < terms <= 1 << 16 else 0
    tile = _tile(plain, m, n, batchCount, near)
    kinds, adds, divisor = {"CONJUGATED": trans == "C"}, False, 1
    if tile:
        rows, columns, warps = tile
        blocks = 2 * m // rows if plain else n // columns
        most = min(triton.cdiv(1440, blocks * batchCount), n // 64) if plain and m > 64 else 1
        kernel, (count, per) = _gemv, _cut(terms, most, columns if plain else rows)
        adds = count > 1 and beta == 1 and abs(alpha) <= 1  # a larger alpha may let a share overflow, not the whole sum
        divisor = min(4, 2 * (lda & -lda))
        sizes = terms, per, 2 * lda // divisor
        kinds |= {"PLAIN": plain, "ROWS": rows, "COLUMNS": columns, "DIVISOR": divisor, "num_warps": warps}
    else:
        block = min(64, triton.next_power_of_2(m)) if plain else 1024 // min(128, triton.next_power_of_2(m))
        step = 1024 // block
        kernel, blocks = _share, triton.cdiv(length, block)
        count, per = _cut(terms, min(triton.cdiv(792, blocks * batchCount), terms // (4 * step)), step)
        sizes = length, terms, per, *((2, 2 * lda) if plain else (2 * lda, 2)), 2 * incx, 2 * x_first
        kinds |= {"BLOCK": block, "TERMS": step, "num_warps": 4}

    factors = Aarray, xarray
    grid = (blocks * batchCount, count)
    if count == 1 or adds:
        kernel[grid](*factors, blocks, *sizes, *ends, END="add" if adds else end, **kinds)
        return
    shares = torch.empty(2 * batchCount * length * count, dtype=torch.float64, device=yarray.device)
    share_ends = (shares, 2 * count, 0, *scalars)
    kernel[grid](*factors, blocks, *sizes, *share_ends, END="share", **kinds)
    width = triton.next_power_of_2(count)
    block = max(1, 1024 // width)
    blocks = triton.cdiv(length, block)
    _total[(blocks * batchCount,)](
        shares, blocks, length, count, *ends, END=end, BLOCK=block, COUNT=width, num_warps=4
    )  # fmt: skip
