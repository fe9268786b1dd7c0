"""cublasSsyrk_v2: one triangle of C = alpha * op(A) @ op(A)^T + beta * C in float32, matrices stored column by column.

A tile holds C transposed, so that its last axis runs along memory; tiles beside the triangle end at once. WHOLE: all
tiles are full and lda is a multiple of 16; then the operands are not masked. Where the triangle has too few tiles, the
depth is cut into parts, whose sums a second kernel adds up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _place(tile, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * across
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit(do_not_specialize=["n", "k", "part", "lda", "ldc", "alpha", "beta", "read_c"])
def _syrk(
    a_ptr, c_ptr, sum_ptr, n, k, part, lda, ldc, alpha, beta, read_c,
    TRANSPOSED: tl.constexpr, LOWER: tl.constexpr, SPLIT: tl.constexpr, WHOLE: tl.constexpr,
    SIZE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C; SPLIT: its sums over ``part`` of the depth go to sum_ptr."""
    tile_row, tile_column = _place(tl.program_id(0), tl.cdiv(n, SIZE))
    outside = tile_row < tile_column if LOWER else tile_row > tile_column
    if outside:
        return
    first = tl.program_id(1).to(tl.int64) * part
    lda, ldc = lda.to(tl.int64), ldc.to(tl.int64)
    if WHOLE:
        first, lda = tl.multiple_of(first, 16), tl.multiple_of(lda, 16)
    depth = tl.minimum(k - first, part)
    row = tile_row.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    column = tile_column.to(tl.int64) * SIZE + tl.arange(0, SIZE)
    step = first + tl.arange(0, DEPTH)
    # right: op(A) transposed, (DEPTH, SIZE), of the tile's rows; left: op(A), (SIZE, DEPTH), of its columns.
    if TRANSPOSED:
        right_at = a_ptr + step[:, None] + row[None, :] * lda
        left_at = a_ptr + column[:, None] * lda + step[None, :]
        stride = DEPTH
    else:
        right_at = a_ptr + step[:, None] * lda + row[None, :]
        left_at = a_ptr + column[:, None] + step[None, :] * lda
        stride = lda * DEPTH
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, depth, DEPTH):
        if WHOLE:
            left = tl.load(left_at)
            right = tl.load(right_at)
        else:
            live = tl.arange(0, DEPTH) < depth - start
            left = tl.load(left_at, mask=(column < n)[:, None] & live[None, :], other=0.0)
            right = tl.load(right_at, mask=live[:, None] & (row < n)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=tl.float32)
        left_at += stride
        right_at += stride
    inside = (column < n)[:, None] & (row < n)[None, :]
    inside = inside & (row[None, :] >= column[:, None] if LOWER else row[None, :] <= column[:, None])
    if SPLIT:
        at = sum_ptr + (tl.program_id(1).to(tl.int64) * n + column)[:, None] * n + row[None, :]
        tl.store(at, total, mask=inside)
    else:
        at = c_ptr + column[:, None] * ldc + row[None, :]
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
        tl.store(at, total * alpha + old * beta, mask=inside)


@triton.jit(do_not_specialize=["n", "count", "ldc", "alpha", "beta", "read_c"])
def _add_parts(
    sum_ptr, c_ptr, n, count, ldc, alpha, beta, read_c, LOWER: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    """Adds the ``count`` parts of the sums up, always in the same order."""
    size = n.to(tl.int64) * n
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    i, j = e % n, e // n
    inside = (e < size) & (i >= j if LOWER else i <= j)
    total = tl.zeros((PARTS, BLOCK), tl.float32)
    for start in range(0, count, PARTS):
        part = start + tl.arange(0, PARTS).to(tl.int64)
        at = sum_ptr + (part * size)[:, None] + e[None, :]
        total += tl.load(at, mask=(part < count)[:, None] & inside[None, :], other=0.0)
    at = c_ptr + i + j * ldc
    old = tl.load(at, mask=inside & (read_c != 0), other=0.0)
    tl.store(at, tl.sum(total, axis=0) * alpha + old * beta, mask=inside)


def _tiles(n, k):
    """Side of a tile of C and parts of the depth, for enough programs for the GPU."""
    size = min(128, max(16, triton.next_power_of_2(n)))
    across = triton.cdiv(n, size)
    tiles = across * (across + 1) // 2
    if tiles >= 132:
        return size, 1
    if k >= 4096:
        return size, min(triton.cdiv(k, 1024), (132 if size == 128 else 396) // tiles)
    if size < 128:
        return size, 1
    across = triton.cdiv(n, 64)
    return 64, 2 if k >= 1024 and across * (across + 1) // 2 <= 264 else 1


def cublasSsyrk_v2(uplo, trans, n, k, alpha, A, lda, beta, C, ldc):
    """A, C: 1-D float32 storage, element (i, j) at i + j * ld. C's other triangle stays; beta 0: C is not read."""
    if n <= 0:
        return
    if alpha == 0:
        k = 0  # A does not count then, not even its NaNs
    lower, read_c = uplo == "L", int(beta != 0)
    size, parts = _tiles(n, k)
    part = triton.cdiv(triton.cdiv(k, parts), 16) * 16 if parts > 1 else k
    parts = triton.cdiv(k, part) if parts > 1 else 1
    whole = n % size == 0 and k % 16 == 0 and lda % 16 == 0
    sums = torch.empty(parts * n * n, dtype=torch.float32, device=C.device) if parts > 1 else C
    _syrk[(triton.cdiv(n, size) ** 2, parts)](
        A, C, sums, n, k, part, lda, ldc, float(alpha), float(beta), read_c, TRANSPOSED=trans != "N", LOWER=lower,
        SPLIT=parts > 1, WHOLE=whole, SIZE=size, DEPTH=16, num_warps=size // 16, num_stages=3,
    )  # fmt: skip
    if parts > 1:
        _add_parts[(triton.cdiv(n * n, 256),)](
            sums, C, n, parts, ldc, float(alpha), float(beta), read_c,
            LOWER=lower, PARTS=min(16, triton.next_power_of_2(parts)), BLOCK=256, num_warps=4,
        )  # fmt: skip
