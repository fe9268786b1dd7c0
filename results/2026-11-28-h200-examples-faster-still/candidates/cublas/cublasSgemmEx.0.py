"""cublasSgemmEx: C = alpha * op(A) @ op(B) + beta * C, summed in float32, of float32, float16 or bfloat16.

Matrices are stored column by column; a tile holds its part of C transposed, so that its last axis runs along memory.
WHOLE says that all tiles are full and all strides multiples of 16 elements: then nothing is masked and loads are wide.
Large products of float32 are formed by the tensor cores in float64, as fast as float32 is elsewhere; large matrices of
16 bits come and go by tensor descriptors, which read zeros outside of them.
"""

import torch
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


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "alpha", "beta", "read_c"])
def _gemm(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, lda, ldb, ldc, read_c,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, WHOLE: tl.constexpr, FLOAT64: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of C."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    tile_row, tile_column = _place(tl.program_id(0), down, across)
    row = tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH)
    lda, ldb, ldc = lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    if WHOLE:
        lda, ldb, ldc = tl.multiple_of(lda, 16), tl.multiple_of(ldb, 16), tl.multiple_of(ldc, 16)
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
    SUM: tl.constexpr = tl.float64 if FLOAT64 else tl.float32
    total = tl.zeros((COLUMNS, ROWS), dtype=SUM)
    for start in range(0, k, DEPTH):
        if WHOLE:
            left = tl.load(left_at)
            right = tl.load(right_at)
        else:
            inside = step < k - start
            left = tl.load(left_at, mask=(column < n)[:, None] & inside[None, :], other=0.0)
            right = tl.load(right_at, mask=inside[:, None] & (row < m)[None, :], other=0.0)
        if FLOAT64:
            left, right = left.to(SUM), right.to(SUM)
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=SUM)
        left_at += left_step
        right_at += right_step
    total = total.to(tl.float32)
    at = c_ptr + column[:, None] * ldc + row[None, :]
    if WHOLE:
        old = tl.load(at, mask=read_c != 0, other=0.0).to(tl.float32)
        tl.store(at, (total * alpha + old * beta).to(c_ptr.dtype.element_ty))
    else:
        inside = (column < n)[:, None] & (row < m)[None, :]
        old = tl.load(at, mask=inside & (read_c != 0), other=0.0).to(tl.float32)
        tl.store(at, (total * alpha + old * beta).to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _sums(
    left_desc, right_desc, row, column, k, LEFT_TURNED: tl.constexpr, RIGHT_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of op(A) @ op(B), transposed as above. TURNED: memory holds the transpose of left or right."""
    total = tl.zeros((COLUMNS, ROWS), tl.float32)
    for step in range(tl.cdiv(k, DEPTH)):
        first = step * DEPTH
        left = left_desc.load([first, column]).T if LEFT_TURNED else left_desc.load([column, first])
        right = right_desc.load([row, first]).T if RIGHT_TURNED else right_desc.load([first, row])
        total = tl.dot(left, right, total)
    return total


@triton.jit
def _put(
    total, c_desc, c_ptr, m, n, ldc, row, column,
    ADD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """In parts, for which little shared memory is kept."""
    if PARTS > 1:
        lower, upper = total.reshape(COLUMNS, 2, ROWS // 2).permute(0, 2, 1).split()
        _put(lower, c_desc, c_ptr, m, n, ldc, row, column, ADD, ROWS // 2, COLUMNS, PARTS // 2)
        _put(upper, c_desc, c_ptr, m, n, ldc, row + ROWS // 2, column, ADD, ROWS // 2, COLUMNS, PARTS // 2)
    elif ADD:
        # Each element once: atomic only so that C need not come here.
        rows, columns = row + tl.arange(0, ROWS)[None, :], column + tl.arange(0, COLUMNS)[:, None]
        at = c_ptr + columns.to(tl.int64) * ldc + rows
        tl.atomic_add(at, total, mask=(columns < n) & (rows < m), sem="relaxed")
    else:
        c_desc.store([column, row], total.to(c_desc.dtype))


@triton.jit
def _gemm_by_descriptors(
    left_desc, right_desc, c_desc, c_ptr, m, n, k, ldc, down, across, tiles, alpha,
    LEFT_TURNED: tl.constexpr, RIGHT_TURNED: tl.constexpr, ADD: tl.constexpr, WALK: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """A tile of C, or WALK: one program for each multiprocessor, tile after tile."""
    if WALK:
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            tile_row, tile_column = _place(tile, down, across)
            row, column = tile_row * ROWS, tile_column * COLUMNS
            total = _sums(left_desc, right_desc, row, column, k, LEFT_TURNED, RIGHT_TURNED, ROWS, COLUMNS, DEPTH)
            _put(total * alpha, c_desc, c_ptr, m, n, ldc, row, column, ADD, ROWS, COLUMNS, PARTS)
    else:
        tile_row, tile_column = _place(tl.program_id(0), down, across)
        row, column = tile_row * ROWS, tile_column * COLUMNS
        total = _sums(left_desc, right_desc, row, column, k, LEFT_TURNED, RIGHT_TURNED, ROWS, COLUMNS, DEPTH)
        _put(total * alpha, c_desc, c_ptr, m, n, ldc, row, column, ADD, ROWS, COLUMNS, PARTS)


def _descriptor(x, turned, shape, ld, block):
    if turned:
        shape, block = shape[::-1], block[::-1]
    return TensorDescriptor(x, shape, [ld, 1], block)


def _by_descriptors(transposed, m, n, k, alpha, beta, operands, lds):
    """Whether this was done: it takes large products of 16-bit numbers, 16-byte boundaries, and a GPU."""
    a, b, c = operands
    wide = c.dtype == torch.float32
    if not c.is_cuda or a.element_size() != 2 or m < 256 or n < 128 or k < 512 or max(m, n, k, *lds) >= 1 << 30:
        return False
    if not (beta == 0 or (beta == 1 and wide)) or any(each.data_ptr() % 16 for each in operands):
        return False
    if any(ld % (16 // each.element_size()) for each, ld in zip(operands, lds, strict=True)):
        return False
    rows, columns, depth, parts, warps, stages = 256, 128, 64, 4 if wide else 2, 8, 4
    across = triton.cdiv(n, columns)
    if triton.cdiv(m, rows) * across < 110:
        rows, parts, warps, stages = 64, 1, 4, 8
        if wide or not 60 <= triton.cdiv(m, rows) * across <= 132:
            return False
    down = triton.cdiv(m, rows)
    left = _descriptor(b, transposed[1], [n, k], lds[1], [columns, depth])
    right = _descriptor(a, transposed[0], [k, m], lds[0], [depth, rows])
    result = _descriptor(c, False, [n, m], lds[2], [columns, rows // parts])
    _gemm_by_descriptors[(min(down * across, 132),)](
        left, right, result, c, m, n, k, lds[2], down, across, down * across, alpha,
        LEFT_TURNED=transposed[1], RIGHT_TURNED=transposed[0], ADD=beta == 1, WALK=down * across > 132,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, PARTS=parts, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return True


def _tiles(m, n, largest, wanted):
    """Rows and columns of a tile of C, up to ``largest``, halved until there are ``wanted`` tiles; warps."""
    rows = min(largest[0], max(16, triton.next_power_of_2(m)))
    columns = min(largest[1], max(16, triton.next_power_of_2(n)))
    while triton.cdiv(m, rows) * triton.cdiv(n, columns) < wanted and max(rows, columns) > 64:
        if rows >= columns:
            rows //= 2
        else:
            columns //= 2
    area = rows * columns
    return rows, columns, 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 8192 else 8


def cublasSgemmEx(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    """A, B, C: 1-D storage, element (i, j) at i + j * ld; Atype, Btype, Ctype: their dtypes; beta 0: C is not read."""
    if m <= 0 or n <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then, not even their NaNs
    transposed, lds, alpha, float64 = (transa != "N", transb != "N"), (lda, ldb, ldc), float(alpha), False
    if Atype == torch.float32:
        rows, columns, warps = _tiles(m, n, (128, 128), 200)
        depth, stages = 16, 3
        if k >= 64 and m * n >= 66 * 128 * 64 and not any((m % 128, n % 64, k % 16, *(ld % 16 for ld in lds))):
            rows, columns, warps, float64 = 128, 64, 8, True
    elif _by_descriptors(transposed, m, n, k, alpha, beta, (A, B, C), lds):
        return
    else:
        rows, columns, warps = _tiles(m, n, (128, 128), 120)
        depth = min(64, max(16, triton.next_power_of_2(k)))
        stages = 2 if k <= 2 * depth else 3 if rows * columns >= 16384 else 4
    full = m % rows == 0 and n % columns == 0 and k % depth == 0
    whole = full and all(ld % 16 == 0 for ld in lds)
    # 128 registers leave room for two programs on a multiprocessor.
    _gemm[(triton.cdiv(m, rows) * triton.cdiv(n, columns),)](
        A, B, C, m, n, k, alpha, float(beta), *lds, int(beta != 0),
        TRANSPOSED_A=transposed[0], TRANSPOSED_B=transposed[1], WHOLE=whole, FLOAT64=float64,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=warps, num_stages=stages, maxnreg=128 if float64 else None,
    )  # fmt: skip
