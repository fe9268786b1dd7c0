"""cublasHgemmStridedBatched: C = alpha * op(A) @ op(B) + beta * C for each matrix of a batch, float16.

Matrices are stored column by column; a tile holds its part of C transposed, so that its last axis runs along memory.
WHOLE says that all tiles are full and all strides multiples of 8 elements: then nothing is masked and loads are wide.
Large matrices come and go by tensor descriptors, which read zeros outside of them.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * down
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "a_batch", "b_batch", "c_batch", "read_c"])
def _gemm(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, lda, ldb, ldc, a_batch, b_batch, c_batch, read_c,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C of one matrix."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    row = tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH)
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    a_batch, b_batch, c_batch = a_batch.to(tl.int64), b_batch.to(tl.int64), c_batch.to(tl.int64)
    if WHOLE:
        lda, ldb, ldc = tl.multiple_of(lda, 8), tl.multiple_of(ldb, 8), tl.multiple_of(ldc, 8)
        a_batch, b_batch = tl.multiple_of(a_batch, 8), tl.multiple_of(b_batch, 8)
        c_batch = tl.multiple_of(c_batch, 8)
    a_ptr += batch * a_batch
    b_ptr += batch * b_batch
    c_ptr += batch * c_batch
    # left is op(B) transposed, (COLUMNS, DEPTH); right is op(A) transposed, (DEPTH, ROWS).
    if TRANSPOSED_B:
        left_at = b_ptr + column[:, None] + step[None, :] * ldb
        left_step = ldb * DEPTH
    else:
        left_at = b_ptr + column[:, None] * ldb + step[None, :]
        left_step = DEPTH
    if TRANSPOSED_A:
        right_at = a_ptr + step[:, None] + row[None, :] * lda
        right_step = DEPTH
    else:
        right_at = a_ptr + step[:, None] * lda + row[None, :]
        right_step = lda * DEPTH
    total = tl.zeros((COLUMNS, ROWS), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        if WHOLE:
            left = tl.load(left_at)
            right = tl.load(right_at)
        else:
            inside = step < k - start
            left = tl.load(left_at, mask=(column < n)[:, None] & inside[None, :], other=0.0)
            right = tl.load(right_at, mask=inside[:, None] & (row < m)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=tl.float32)
        left_at += left_step
        right_at += right_step
    at = c_ptr + column[:, None] * ldc + row[None, :]
    if WHOLE:
        old = tl.load(at, mask=read_c != 0, other=0.0).to(tl.float32)
        tl.store(at, (total * alpha + old * beta).to(c_ptr.dtype.element_ty))
    else:
        inside = (column < n)[:, None] & (row < m)[None, :]
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0).to(tl.float32)
        tl.store(at, (total * alpha + old * beta).to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _part(desc, batch, row, column, TURNED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A block of one matrix, of which memory may hold the transpose."""
    if TURNED:
        part = desc.load([batch, column, row]).reshape(COLUMNS, ROWS).T
    else:
        part = desc.load([batch, row, column]).reshape(ROWS, COLUMNS)
    return part


@triton.jit(do_not_specialize=["alpha"])
def _long_products(
    left_desc, right_desc, c_desc, down, across, tiles, k, alpha,
    ONE: tl.constexpr, LEFT_TURNED: tl.constexpr, RIGHT_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """One program for each multiprocessor, tile after tile."""
    steps = tl.cdiv(k, DEPTH)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        batch = tile // (down * across)
        tile_row, tile_column = _place(tile % (down * across), down, across)
        row, column = tile_row * ROWS, tile_column * COLUMNS
        total = tl.zeros((COLUMNS, ROWS), tl.float32)
        for step in range(steps):
            left = _part(left_desc, batch, column, step * DEPTH, LEFT_TURNED, COLUMNS, DEPTH)
            right = _part(right_desc, batch, step * DEPTH, row, RIGHT_TURNED, DEPTH, ROWS)
            total = tl.dot(left, right, total)
        if not ONE:
            total *= alpha
        # Stored in halves, for which less shared memory is kept.
        lower, upper = total.reshape(COLUMNS, 2, ROWS // 2).permute(0, 2, 1).split()
        c_desc.store([batch, column, row], lower.to(c_desc.dtype).reshape(1, COLUMNS, ROWS // 2))
        c_desc.store([batch, column, row + ROWS // 2], upper.to(c_desc.dtype).reshape(1, COLUMNS, ROWS // 2))


@triton.jit(do_not_specialize=["alpha"])
def _short_products(
    left_desc, right_desc, c_desc, down, across, alpha,
    ONE: tl.constexpr, LEFT_TURNED: tl.constexpr, RIGHT_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Up to DEPTH terms in a sum: a program keeps COLUMNS columns of op(B) and goes along the rows of C."""
    batch, column = tl.program_id(0) // across, tl.program_id(0) % across * COLUMNS
    left = _part(left_desc, batch, column, 0, LEFT_TURNED, COLUMNS, DEPTH)
    for tile in tl.range(0, down):
        total = tl.dot(left, _part(right_desc, batch, 0, tile * ROWS, RIGHT_TURNED, DEPTH, ROWS))
        if not ONE:
            total *= alpha
        c_desc.store([batch, column, tile * ROWS], total.to(c_desc.dtype).reshape(1, COLUMNS, ROWS))


def _descriptor(x, turned, batch, shape, ld, stride, block):
    if turned:
        shape, block = shape[::-1], block[::-1]
    return TensorDescriptor(x, [batch, *shape], [stride if batch > 1 else shape[0] * ld, ld, 1], [1, *block])


def _by_descriptors(transposed, m, n, k, alpha, operands, lds, strides, batch):
    """Whether this was done: it takes large products, 16-byte boundaries, and a GPU."""
    a, b, c = operands
    if not c.is_cuda or m < 128 or n < 128 or not (64 < k <= 128 or k >= 256) or max(m, n, k, batch) >= 1 << 30:
        return False
    steps = (*lds, *strides) if batch > 1 else lds
    if any(step <= 0 or step % 8 for step in steps) or any(each.data_ptr() % 16 for each in operands):
        return False
    if any(stride * batch + ld * max(m, n, k) >= 1 << 38 for ld, stride in zip(lds, strides, strict=True)):
        return False
    short = k <= 128
    rows, columns, depth = (128, 256, 128) if short else (256, 128, 64)
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    if not 264 <= batch * down * across < 1 << 30 or (short and (m < 512 or n < 256 or batch * across < 396)):
        return False
    left = _descriptor(b, transposed[1], batch, [n, k], lds[1], strides[1], [columns, depth])
    right = _descriptor(a, transposed[0], batch, [k, m], lds[0], strides[0], [depth, rows])
    result = _descriptor(c, False, batch, [n, m], lds[2], strides[2], [columns, rows if short else rows // 2])
    meta = {"ONE": alpha == 1, "LEFT_TURNED": transposed[1], "RIGHT_TURNED": transposed[0]}
    meta |= {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": 8}
    if short:
        _short_products[(batch * across,)](left, right, result, down, across, alpha, **meta)
    else:
        tiles = batch * down * across
        _long_products[(132,)](left, right, result, down, across, tiles, k, alpha, **meta, num_stages=4)
    return True


def _tiles(m, n, k, batch):
    """Tile of C, its depth, warps and stages: as large as leaves enough tiles for the GPU."""
    rows = min(256, max(16, triton.next_power_of_2(m)))
    columns = min(128, max(16, triton.next_power_of_2(n)))
    if rows == 256 and (columns < 128 or k < 512):
        rows = 128
    while triton.cdiv(m, rows) * triton.cdiv(n, columns) * batch < 120 and max(rows, columns) > 64:
        if rows >= columns:
            rows //= 2
        else:
            columns //= 2
    area = rows * columns
    depth = min(64, max(16, triton.next_power_of_2(k)))
    warps = 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 16384 else 8
    return rows, columns, depth, warps, 2 if k <= 2 * depth else 3 if area >= 16384 else 4


def cublasHgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    """A, B, C: 1-D float16 storage, element (i, j) of matrix p at i + j * ld + p * stride; beta 0: C is not read."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    transposed, lds, strides = (transa != "N", transb != "N"), (lda, ldb, ldc), (strideA, strideB, strideC)
    if beta == 0 and _by_descriptors(transposed, m, n, k, float(alpha), (A, B, C), lds, strides, batchCount):
        return
    rows, columns, depth, warps, stages = _tiles(m, n, k, batchCount)
    full = m % rows == 0 and n % columns == 0 and k % depth == 0
    whole = full and all(step % 8 == 0 for step in (*lds, *strides))
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batchCount,)](
        A, B, C, m, n, k, float(alpha), float(beta), *lds, *strides, int(beta != 0),
        TRANSPOSED_A=transposed[0], TRANSPOSED_B=transposed[1], WHOLE=whole,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=warps, num_stages=stages,
    )  # fmt: skip
