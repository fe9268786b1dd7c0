"""cublasCgemm_v2: C = alpha * op(A) @ op(B) + beta * C, complex64.

A complex matrix of r rows, stored by columns, is a real one of 2 r rows, real and imaginary parts in turn. One real
product of such tiles, (2 COLUMNS, DEPTH) and (DEPTH, 2 ROWS), holds the four sums of products of parts for a tile of
C; they are put together at the end, and conjugation is a sign there. A tile holds C transposed, so that its last axis
runs along memory. WHOLE: all tiles are full and all strides multiples of 16 elements; then nothing is masked. Where C
has too few tiles, the depth is cut into parts, whose sums a second kernel adds up.
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


@triton.jit(do_not_specialize=["m", "n", "k", "part", "lda", "ldb", "ldc", "read_c"])
def _gemm(
    a_ptr, b_ptr, c_ptr, sum_ptr, m, n, k, part, lda, ldb, ldc, a_sign, b_sign,
    alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, SPLIT: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C; SPLIT: its sums over ``part`` of the depth go to sum_ptr."""
    # 2 m and 2 n real parts may not fit into 32 bits.
    m, n, k = m.to(tl.int64), n.to(tl.int64), k.to(tl.int64)
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
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
    real = real_real - imag_imag * (a_sign * b_sign)
    imag = imag_real * a_sign + real_imag * b_sign
    row = top * 2 + tl.arange(0, 2 * ROWS)
    column = left + tl.arange(0, COLUMNS)
    inside = (column < n)[:, None] & (row < m * 2)[None, :]
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * n + column)[:, None] * (m * 2) + row[None, :]
        tl.store(at, tl.reshape(tl.join(real, imag), (COLUMNS, 2 * ROWS)), mask=inside)
    else:
        at = c_ptr + column[:, None] * ldc + row[None, :]
        if WHOLE:
            old = tl.load(at, mask=read_c != 0, other=0.0)
            tl.store(at, _combined(real, imag, old, alpha_real, alpha_imag, beta_real, beta_imag, ROWS, COLUMNS))
        else:
            old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
            out = _combined(real, imag, old, alpha_real, alpha_imag, beta_real, beta_imag, ROWS, COLUMNS)
            tl.store(at, out, mask=inside)


@triton.jit(do_not_specialize=["m", "n", "count", "ldc", "read_c"])
def _add_parts(
    sum_ptr, c_ptr, m, n, count, ldc, alpha_real, alpha_imag, beta_real, beta_imag, read_c,
    PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Adds the ``count`` parts of the sums up, always in the same order."""
    size = m.to(tl.int64) * n
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
    at = c_ptr + (i + j * ldc) * 2
    old_real = tl.load(at, mask=inside & (read_c != 0), other=0.0)
    old_imag = tl.load(at + 1, mask=inside & (read_c != 0), other=0.0)
    out_real = (real * alpha_real - imag * alpha_imag) + (old_real * beta_real - old_imag * beta_imag)
    out_imag = (real * alpha_imag + imag * alpha_real) + (old_real * beta_imag + old_imag * beta_real)
    tl.store(at, out_real, mask=inside)
    tl.store(at + 1, out_imag, mask=inside)


def _tiles(m, n, k, batch):
    """Tile of C, warps, and parts of the depth: as large as leaves enough programs for the GPU."""
    rows = min(64, max(16, triton.next_power_of_2(m)))
    columns = min(64, max(16, triton.next_power_of_2(n)))
    tiles = triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch
    parts = 1
    if tiles < 132 and k >= 2048:
        parts = max(1, min(triton.cdiv(k, 512), (132 if rows * columns > 2048 else 396) // tiles))
    else:
        while triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch < 132 and max(rows, columns) > 32:
            if rows >= columns:
                rows //= 2
            else:
                columns //= 2
    area = 4 * rows * columns
    return rows, columns, 1 if area <= 1024 else 2 if area <= 2048 else 4 if area <= 4096 else 8, parts


def _launch(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """C = alpha * op(A) @ op(B) + beta * C of matrices seen as real ones."""
    rows, columns, warps, parts = _tiles(m, n, k, 1)
    part = triton.cdiv(triton.cdiv(k, parts), 16) * 16 if parts > 1 else k
    parts = triton.cdiv(k, part) if parts > 1 else 1
    full = m % rows == 0 and n % columns == 0 and k % 16 == 0
    whole = full and all(stride % 16 == 0 for stride in (lda, ldb, ldc))
    sums = torch.empty(parts * m * n * 2, dtype=c.dtype, device=c.device) if parts > 1 else c
    ends = (alpha.real, alpha.imag, beta.real, beta.imag, int(beta != 0))
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns), parts)](
        a, b, c, sums, m, n, k, part, lda, ldb, ldc,
        -1.0 if transa == "C" else 1.0, -1.0 if transb == "C" else 1.0, *ends,
        TRANSPOSED_A=transa != "N", TRANSPOSED_B=transb != "N", SPLIT=parts > 1, WHOLE=whole,
        ROWS=rows, COLUMNS=columns, DEPTH=16, num_warps=warps, num_stages=3,
    )  # fmt: skip
    if parts > 1:
        count = min(64, triton.next_power_of_2(parts))
        block = max(16, 1024 // count)
        _add_parts[(triton.cdiv(m * n, block),)](
            sums, c, m, n, parts, ldc, *ends, PARTS=count, BLOCK=block, num_warps=4
        )


def cublasCgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    """A, B, C: 1-D complex64 storage, element (i, j) at i + j * ld; beta 0: C is not read."""
    if m <= 0 or n <= 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    a, b, c = (torch.view_as_real(each) for each in (A, B, C))
    _launch(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
