"""cublasCgemvStridedBatched: y = alpha * op(A) @ x + beta * y for each of a batch at fixed strides, complex64.

A tile's last axis runs down a column, along memory. Where x has no gaps and tiles cover A without a rest, a program
owns rows, or columns if A is transposed, and either the compiler loads tiles ahead or the next one waits in registers.
Whatever else there may be is cut into shares along the sums, and a second kernel adds the shares up.
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
def _rows(a_ptr, x_ptr, columns, lda, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sums of ROWS rows."""
    column = tl.arange(0, COLUMNS)
    at = column[:, None] * lda + tl.arange(0, ROWS)[None, :]
    real, imag = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for _ in tl.range(0, columns // COLUMNS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        real, imag = _add(real, imag, a, tl.load(x_ptr + column), 1, False)
        a_ptr += lda.to(tl.int64) * COLUMNS
        x_ptr += COLUMNS
    return real, imag


@triton.jit
def _columns(a_ptr, x_ptr, rows, lda, CONJUGATED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sums of COLUMNS columns."""
    row = tl.arange(0, ROWS)
    at = (tl.arange(0, COLUMNS) * lda)[:, None] + row[None, :]
    real, imag = tl.zeros((COLUMNS, ROWS), tl.float32), tl.zeros((COLUMNS, ROWS), tl.float32)
    for _ in tl.range(0, rows // ROWS, num_stages=4):
        a = tl.load(a_ptr + at, eviction_policy="evict_first")
        more_real, more_imag = _times(a, tl.load(x_ptr + row), 0, CONJUGATED)
        real += more_real
        imag += more_imag
        a_ptr += ROWS
        x_ptr += ROWS
    return tl.sum(real, axis=1), tl.sum(imag, axis=1)


@triton.jit
def _ahead(a_ptr, at, a_step, x_ptr, x_at, x_step, turns, AXIS: tl.constexpr, CONJUGATED: tl.constexpr):
    """The sums of tiles along their first axis, which a thread adds up alone, the next tile on its way meanwhile."""
    real = tl.zeros((at.shape[1], at.shape[2]), tl.float32)
    imag = tl.zeros((at.shape[1], at.shape[2]), tl.float32)
    a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + x_at)
    for _ in range(1, turns):
        real, imag = _add(real, imag, a, x, AXIS, CONJUGATED)
        a_ptr += a_step
        x_ptr += x_step
        a, x = tl.load(a_ptr + at, eviction_policy="evict_first"), tl.load(x_ptr + x_at)
    return _add(real, imag, a, x, AXIS, CONJUGATED)


@triton.jit
def _sums(
    a_ptr, x_ptr, terms, lda,
    KIND: tl.constexpr, CONJUGATED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The sums of ROWS rows or COLUMNS columns, at once or, ahead, by PARTS of a tile."""
    if KIND == "rows":
        return _rows(a_ptr, x_ptr, terms, lda, ROWS, COLUMNS)
    elif KIND == "columns":
        return _columns(a_ptr, x_ptr, terms, lda, CONJUGATED, ROWS, COLUMNS)
    elif KIND == "rows ahead":
        step: tl.constexpr = PARTS * COLUMNS
        column = tl.arange(0, PARTS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        at = column[:, :, None] * lda + tl.arange(0, ROWS)[None, None, :]
        real, imag = _ahead(a_ptr, at, lda.to(tl.int64) * step, x_ptr, column, step, terms // step, 2, False)
        return tl.sum(real, axis=0), tl.sum(imag, axis=0)
    else:
        step: tl.constexpr = PARTS * ROWS
        row = tl.arange(0, PARTS)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
        at = (tl.arange(0, COLUMNS) * lda)[None, :, None] + row[:, None, :]
        real, imag = _ahead(a_ptr, at, step, x_ptr, row, step, terms // step, 1, CONJUGATED)
        return tl.sum(real, axis=1), tl.sum(imag, axis=1)


@triton.jit
def _end(i, real, imag, inside, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr):
    """y = alpha * sums + beta * y, or stores the sums as y's share."""
    at = y_ptr + i.to(tl.int64) * incy
    if END == "share":
        at += tl.program_id(1) * 2
    else:
        real, imag = real * alpha_real - imag * alpha_imag, real * alpha_imag + imag * alpha_real
    if END == "read":
        old_real, old_imag = tl.load(at, mask=inside), tl.load(at + 1, mask=inside)
        real += old_real * beta_real - old_imag * beta_imag
        imag += old_real * beta_imag + old_imag * beta_real
    tl.store(at, real, mask=inside)
    tl.store(at + 1, imag, mask=inside)


@triton.jit
def _gemv(
    a_ptr, a_batch, x_ptr, x_batch, blocks, terms, lda,
    y_ptr, y_batch, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
    KIND: tl.constexpr, CONJUGATED: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DIVISOR: tl.constexpr,
):  # fmt: skip
    """ROWS elements of y, or COLUMNS ones of a transposed A."""
    PLAIN: tl.constexpr = KIND == "rows" or KIND == "rows ahead"
    BLOCK: tl.constexpr = ROWS if PLAIN else COLUMNS
    lda *= DIVISOR
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    first = tl.program_id(0) % blocks * BLOCK
    a_ptr += batch * a_batch * DIVISOR + (first if PLAIN else first.to(tl.int64) * lda)
    real, imag = _sums(a_ptr, x_ptr + batch * x_batch, terms, lda, KIND, CONJUGATED, PARTS, ROWS, COLUMNS)
    y_ptr += batch * y_batch + y_first
    i = first + tl.arange(0, BLOCK)
    _end(i, real, imag, None, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _share(
    a_ptr, a_batch, x_ptr, x_batch, blocks, length, terms, per, a_step, a_term, incx, x_first,
    y_ptr, y_batch, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
    CONJUGATED: tl.constexpr, BLOCK: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    """BLOCK elements' sums of ``per`` terms, of any strides."""
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    a_ptr += batch * a_batch
    x_ptr += batch * x_batch + x_first
    y_ptr += batch * y_batch + y_first
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.program_id(1).to(tl.int64) * per
    real, imag = tl.zeros((BLOCK, TERMS), tl.float32), tl.zeros((BLOCK, TERMS), tl.float32)
    for start in range(0, per, TERMS):
        term = begin + start + tl.arange(0, TERMS)
        inside = (i < length)[:, None] & (term < terms)[None, :]
        a = tl.load(a_ptr + i[:, None] * a_step + term[None, :] * a_term, mask=inside, other=0)
        x = tl.load(x_ptr + term * incx, mask=term < terms, other=0)
        more_real, more_imag = _times(a, x, 0, CONJUGATED)
        real += more_real
        imag += more_imag
    real, imag = tl.sum(real, axis=1), tl.sum(imag, axis=1)
    _end(i, real, imag, i < length, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


@triton.jit
def _total(
    shares_ptr, blocks, length, count,
    y_ptr, y_batch, incy, y_first, alpha_real, alpha_imag, beta_real, beta_imag, END: tl.constexpr,
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
    y_ptr += batch * y_batch + y_first
    _end(i, real, imag, i < length, y_ptr, incy, alpha_real, alpha_imag, beta_real, beta_imag, END)


def _tile(plain, m, n, batches, near):
    """How A is walked, if tiles of at most ``near`` columns cover it."""
    if plain and m in (64, 128) and n % 8 == 0 and m * batches >= 64 * 1056 and near >= 8:
        return {"KIND": "rows", "PARTS": 1, "ROWS": 64, "COLUMNS": 8, "num_warps": 1}
    if plain and m % 128 == 0 and n % 16 == 0 and m // 128 * batches >= 264 and near >= 16:
        return {"KIND": "rows ahead", "PARTS": 8, "ROWS": 128, "COLUMNS": 2, "num_warps": 4}
    if not plain and m % 256 == 0 and m >= 1024 and n % 8 == 0 and n // 8 * batches >= 396 and near >= 8:
        if m % 512 == 0 and m >= 4096 and n * batches >= 8192:
            return {"KIND": "columns", "PARTS": 1, "ROWS": 512, "COLUMNS": 4, "num_warps": 4}
        return {"KIND": "columns", "PARTS": 1, "ROWS": 256, "COLUMNS": 8, "num_warps": 4}
    if not plain and m % 64 == 0 and m < 1024 and n % 32 == 0 and n // 32 * batches >= 200 and near >= 32:
        return {"KIND": "columns ahead", "PARTS": 4, "ROWS": 16, "COLUMNS": 32, "num_warps": 4}
    return None


def _cut(terms, step, blocks):
    """How many shares of the sums, and how many terms each.

    Shares only where y alone gives too few programs, or for sums of more than 4096 steps.
    """
    count = max(1, min(triton.cdiv(792, blocks), terms // (4 * step)), triton.cdiv(terms, 4096 * step))
    per = max(1, triton.cdiv(triton.cdiv(terms, count), step)) * step
    return max(1, triton.cdiv(terms, per)), per


def cublasCgemvStridedBatched(
    trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount
):  # fmt: skip
    """A, x, y: 1-D complex64 storage, element (i, j) of matrix p at i + j * lda + p * strideA.

    A negative increment walks from the far end. With beta 0 y is not read, with alpha 0 neither A nor x is.
    """
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    alpha, beta, plain = complex(alpha), complex(beta), trans == "N"
    length, terms = (m, n) if plain else (n, m)
    x_first = (1 - terms) * incx if incx < 0 else 0
    y_first = (1 - length) * incy if incy < 0 else 0
    scalars = (alpha.real, alpha.imag, beta.real, beta.imag)
    ends = (torch.view_as_real(y), 2 * stridey, 2 * incy, 2 * y_first, *scalars)
    end = "read" if beta != 0 else "put"
    if alpha == 0:
        terms = 0

    divisor = min(4, (lda | strideA) & -(lda | strideA))
    # The columns that a tile may have: its offsets take 32 bits.
    near = (2**31 - 2**12) // lda if incx == 1 and 0 < terms <= 1 << 16 else 0
    kinds = _tile(plain, m, n, batchCount, near)
    if kinds:
        kernel, blocks, count = _gemv, m // kinds["ROWS"] if plain else n // kinds["COLUMNS"], 1
        sizes = terms, lda // divisor
        kinds["DIVISOR"] = divisor
    else:
        divisor, block = (
            1,
            min(128, triton.next_power_of_2(m)) if plain else 2048 // min(256, triton.next_power_of_2(m)),
        )
        kernel, blocks = _share, triton.cdiv(length, block)
        count, per = _cut(terms, 2048 // block, blocks * batchCount)
        sizes = length, terms, per, *((1, lda) if plain else (lda, 1)), incx, x_first
        kinds = {"BLOCK": block, "TERMS": 2048 // block, "num_warps": 8}
    kinds["CONJUGATED"] = trans == "C"

    factors = A.view(torch.int64), strideA // divisor, x.view(torch.int64), stridex
    grid = (blocks * batchCount, count)
    if count == 1:
        kernel[grid](*factors, blocks, *sizes, *ends, END=end, **kinds)
        return
    shares = torch.empty(2 * batchCount * length * count, dtype=torch.float32, device=y.device)
    share_ends = (shares, 2 * length * count, 2 * count, 0, *scalars)
    kernel[grid](*factors, blocks, *sizes, *share_ends, END="share", **kinds)
    width = triton.next_power_of_2(count)
    block = max(1, 1024 // width)
    blocks = triton.cdiv(length, block)
    _total[(blocks * batchCount,)](
        shares, blocks, length, count, *ends, END=end, BLOCK=block, COUNT=width, num_warps=4
    )  # fmt: skip
