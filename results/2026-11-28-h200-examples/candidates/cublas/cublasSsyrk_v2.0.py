"""cublasSsyrk_v2: one triangle of C = alpha * op(A) @ op(A)^T + beta * C in float32, matrices stored column by column.

The product is its own transpose, so that the kernel may take the stored columns of C as rows: neighbouring threads
then store neighbouring words, and C's lower triangle is the upper one of these rows. Tiles beside the triangle end at
once; those on the diagonal mask what lies beyond it.
"""

import triton
import triton.language as tl


@triton.jit
def _syrk(
    a_ptr, c_ptr, size, depth, alpha, beta, a_row, a_depth, ldc,
    LOWER: tl.constexpr, READ_C: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of the triangle of c (size, size) = alpha * a @ a^T + beta * c; a: (size, depth), c by its columns."""
    tile_column, tile_row = tl.program_id(0), tl.program_id(1)
    if (tile_row > tile_column) if LOWER else (tile_row < tile_column):
        return
    row = (tile_row * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)[:, None]
    column = (tile_column * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    # DEPTH strides may leave 32 bits.
    deep = tl.full((), DEPTH, tl.int64)
    left_at = a_ptr + row * a_row + step[None, :] * a_depth
    right_at = a_ptr + step[:, None] * a_depth + column * a_row
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, depth, DEPTH):
        left = tl.load(left_at, mask=(row < size) & (first + step[None, :] < depth), other=0.0)
        right = tl.load(right_at, mask=(first + step[:, None] < depth) & (column < size), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        left_at += deep * a_depth
        right_at += deep * a_depth
    total *= alpha
    c_at = c_ptr + row * ldc + column
    inside = (row < size) & (column < size) & ((row <= column) if LOWER else (row >= column))
    if READ_C:
        total += beta * tl.load(c_at, mask=inside)
    tl.store(c_at, total, mask=inside)


def cublasSsyrk_v2(uplo, trans, n, k, alpha, A, lda, beta, C, ldc):
    """A, C: 1-D float32 storage, element (i, j) at i + j * ld. C's other triangle stays; beta 0: C is not read."""
    if n == 0:
        return
    if alpha == 0:
        k = 0  # A does not count then, not even its NaNs
    block = max(16, min(64 if C.is_cuda else 512, triton.next_power_of_2(n)))
    depth = max(16, min(32 if C.is_cuda else 512, triton.next_power_of_2(k)))
    tiles = triton.cdiv(n, block)
    _syrk[(tiles, tiles)](
        A, C, n, k, float(alpha), float(beta), *((1, lda) if trans == "N" else (lda, 1)), ldc,
        LOWER=uplo == "L", READ_C=beta != 0, BLOCK=block, DEPTH=depth, num_warps=4,
    )  # fmt: skip
