"""cublasCsyrkEx: C = alpha * op(A) @ op(A)^T + beta * C, one triangle, complex64.

A complex matrix of r rows, stored by columns, is a real one of 2 r rows, real and imaginary parts in turn. One real
product of such tiles, (2 COLUMNS, DEPTH) and (DEPTH, 2 ROWS), holds the four sums of products of parts for a tile of
C; they are put together at the end. A tile holds C transposed, so that its last axis runs along memory. WHOLE: all
tiles are full and all strides multiples of 16 elements; then nothing is masked. Where C has too few tiles, the depth
is cut into parts, whose sums a second kernel adds up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * down
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit
def _combined(real, imag, old, alpha_real, alpha_imag, beta_real, beta_imag, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """alpha * (real, imag) + beta * old as a tile of real and imaginary parts in turn, which old is already."""
    old_real, old_imag = tl.split(tl.reshape(old, (COLUMNS, ROWS, 2)))
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    return tl.reshape(tl.join(out_real, out_imag), (COLUMNS, 2 * ROWS))


@triton.jit(do_not_specialize=["m", "k", "part", "lda", "ldc", "read_c"])
def _gemm(
    a_ptr, c_ptr, sum_ptr, m, k, part, lda, ldc,
    alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    TRANSPOSED_A: tl.constexpr, SPLIT: tl.constexpr, LOWER: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C; SPLIT: its sums over ``part`` of the depth go to sum_ptr."""
    n = m
    b_ptr = a_ptr
    ldb = lda
    TRANSPOSED_B: tl.constexpr = not TRANSPOSED_A
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    outside = tile_row < tile_column if LOWER else tile_row > tile_column
    if outside:
        return
    first = tl.program_id(1).to(tl.int64) * part
    if WHOLE:
        first = tl.multiple_of(first, 16)
    depth = tl.minimum(k - first, part)
    top = tile_row.to(tl.int64) * ROWS
    left = tile_column.to(tl.int64) * COLUMNS
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    if WHOLE:
        lda, ldb, ldc = tl.multiple_of(lda, 16), tl.multiple_of(ldb, 16), tl.multiple_of(ldc, 16)
    lda, ldb, ldc = lda * 2, ldb * 2, ldc * 2
    step, steps = first + tl.arange(0, DEPTH), first * 2 + tl.arange(0, 2 * DEPTH)
    # a becomes op(A) transposed, (DEPTH, 2 * ROWS); where memory runs along the depth it comes as (ROWS, 2 * DEPTH).
    if TRANSPOSED_A:
        a_line = top + tl.arange(0, ROWS)
        a_at = a_ptr + a_line[:, None] * lda + steps[None, :]
        a_step = 2 * DEPTH
    else:
        a_line = top * 2 + tl.arange(0, 2 * ROWS)
        a_at = a_ptr + step[:, None] * lda + a_line[None, :]
        a_step = lda * DEPTH
    # b becomes op(B) transposed, (2 * COLUMNS, DEPTH), or comes as (COLUMNS, 2 * DEPTH).
    if TRANSPOSED_B:
        b_line = left * 2 + tl.arange(0, 2 * COLUMNS)
        b_at = b_ptr + b_line[:, None] + step[None, :] * ldb
        b_step = ldb * DEPTH
    else:
        b_line = left + tl.arange(0, COLUMNS)
        b_at = b_ptr + b_line[:, None] * ldb + steps[None, :]
        b_step = 2 * DEPTH
    products = tl.zeros((2 * COLUMNS, 2 * ROWS), dtype=tl.float32)
    for start in range(0, depth, DEPTH):
        if WHOLE:
            b = tl.load(b_at)
            a = tl.load(a_at)
        else:
            inside = tl.arange(0, DEPTH) < depth - start
            parts = tl.arange(0, 2 * DEPTH) < (depth - start) * 2
            if TRANSPOSED_A:
                a = tl.load(a_at, mask=(a_line < m)[:, None] & parts[None, :], other=0.0)
            else:
                a = tl.load(a_at, mask=inside[:, None] & (a_line < m * 2)[None, :], other=0.0)
            if TRANSPOSED_B:
                b = tl.load(b_at, mask=(b_line < n * 2)[:, None] & inside[None, :], other=0.0)
            else:
                b = tl.load(b_at, mask=(b_line < n)[:, None] & parts[None, :], other=0.0)
        if TRANSPOSED_A:
            a = tl.reshape(tl.permute(tl.reshape(a, (ROWS, DEPTH, 2)), (1, 0, 2)), (DEPTH, 2 * ROWS))
        if not TRANSPOSED_B:
            b = tl.reshape(tl.permute(tl.reshape(b, (COLUMNS, DEPTH, 2)), (0, 2, 1)), (2 * COLUMNS, DEPTH))
        products = tl.dot(b, a, products, input_precision="ieee", out_dtype=tl.float32)
        b_at += b_step
        a_at += a_step
    # (column, part of b, row, part of a) into four tiles (column, row).
    b_real, b_imag = tl.split(tl.permute(tl.reshape(products, (COLUMNS, 2, ROWS, 2)), (0, 2, 1, 3)))
    real_real, real_imag = tl.split(b_real)
    imag_real, imag_imag = tl.split(b_imag)
    real = real_real - imag_imag
    imag = imag_real + real_imag
    row = top * 2 + tl.arange(0, 2 * ROWS)
    column = left + tl.arange(0, COLUMNS)
    inside = (column < n)[:, None] & (row < m * 2)[None, :]
    i = (row // 2)[None, :]
    inside = inside & (i >= column[:, None] if LOWER else i <= column[:, None])
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * n + column)[:, None] * (m * 2) + row[None, :]
        tl.store(at, tl.reshape(tl.join(real, imag), (COLUMNS, 2 * ROWS)), mask=inside)
    else:
        at = c_ptr + column[:, None] * ldc + row[None, :]
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
        out = _combined(real, imag, old, alpha_real, alpha_imag, beta_real, beta_imag, ROWS, COLUMNS)
        tl.store(at, out, mask=inside)


@triton.jit(do_not_specialize=["m", "count", "ldc", "read_c"])
def _add_parts(
    sum_ptr, c_ptr, m, count, ldc, alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    LOWER: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    size = m.to(tl.int64) * m
    program = tl.program_id(0).to(tl.int64)
    e = program * BLOCK + tl.arange(0, BLOCK)
    word = program * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    i, j = e % m, e // m
    total = tl.zeros((PARTS, 2 * BLOCK), dtype=tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + (part * size * 2)[:, None] + word[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & (word < size * 2)[None, :], other=0.0)
    real, imag = tl.split(tl.reshape(tl.sum(total, axis=0), (BLOCK, 2)))
    inside = e < size
    inside = inside & (i >= j if LOWER else i <= j)
    at = c_ptr + (i + j * ldc) * 2
    old_real = tl.load(at, mask=inside & (read_c != 0), other=0.0)
    old_imag = tl.load(at + 1, mask=inside & (read_c != 0), other=0.0)
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    tl.store(at, out_real, mask=inside)
    tl.store(at + 1, out_imag, mask=inside)


def _tiles(n, k):
    """Side of a tile of C and parts of the depth, for enough programs for the GPU."""
    size = min(64, max(16, triton.next_power_of_2(n)))
    across = triton.cdiv(n, size)
    tiles = across * (across + 1) // 2
    if tiles < 132 and k >= 2048:
        return size, max(1, min(triton.cdiv(k, 512), (132 if size == 64 else 396) // tiles))
    if tiles < 132:
        return min(size, 32), 1
    # Little more than a program for each multiprocessor: thirds leave less of the GPU idle at the end.
    return size, 3 if tiles <= 176 and k >= 768 else 1


def cublasCsyrkEx(uplo, trans, n, k, alpha, A, Atype, lda, beta, C, Ctype, ldc):
    """A, C: 1-D complex64 storage, element (i, j) at i + j * ld; only C's triangle ``uplo`` is read and written."""
    if n <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # A does not count then, not even its NaNs
    lower = uplo == "L"
    size, parts = _tiles(n, k)
    part = triton.cdiv(triton.cdiv(k, parts), 16) * 16 if parts > 1 else k
    parts = triton.cdiv(k, part) if parts > 1 else 1
    whole = n % size == 0 and k % 16 == 0 and lda % 16 == 0 and ldc % 16 == 0
    out = torch.view_as_real(C)
    sums = torch.empty(parts * n * n * 2, dtype=torch.float32, device=C.device) if parts > 1 else out
    ends = (alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    _gemm[(triton.cdiv(n, size) ** 2, parts)](
        torch.view_as_real(A), out, sums, n, k, part, lda, ldc, *ends, TRANSPOSED_A=trans != "N", SPLIT=parts > 1,
        LOWER=lower, WHOLE=whole, ROWS=size, COLUMNS=size, DEPTH=16,
        num_warps={16: 1, 32: 4, 64: 8}[size], num_stages=3,
    )  # fmt: skip
    if parts > 1:
        count = min(64, triton.next_power_of_2(parts))
        block = max(16, 1024 // count)
        _add_parts[(triton.cdiv(n * n, block),)](
            sums, out, n, parts, ldc, *ends, LOWER=lower, PARTS=count, BLOCK=block, num_warps=4
        )
