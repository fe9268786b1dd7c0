"""cublasSgemmBatched_64: C = alpha * op(A) @ op(B) + beta * C for the matrices behind arrays of pointers, float32.

A tile holds C transposed, so that its last axis runs along memory. All but short sums of small tiles are formed by
the tensor cores in float64, whose speed there is that of float32 elsewhere, and rounded once. Addresses are known only
on the device: where they are multiples of 16 bytes, as the strides are, a program moves 16 bytes at a time.
"""

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
def _tile(
    a, b, c, m, n, k, lda, ldb, ldc, top, left, alpha, beta,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, WHOLE_M: tl.constexpr, WHOLE_N: tl.constexpr,
    WHOLE_K: tl.constexpr, READ_C: tl.constexpr, EARLY: tl.constexpr, ALIGNED: tl.constexpr, ALIGNED_C: tl.constexpr,
    STAGES: tl.constexpr, TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of one C from addresses; EARLY: what C held is read before the sums."""
    a, b = a.to(tl.pointer_type(tl.float32)), b.to(tl.pointer_type(tl.float32))
    c = c.to(tl.pointer_type(tl.float32))
    if ALIGNED:
        a, b = tl.multiple_of(a, 16), tl.multiple_of(b, 16)
    if ALIGNED_C:
        c = tl.multiple_of(c, 16)
    row = (top + tl.arange(0, ROWS))[None, :]
    column = (left + tl.arange(0, COLUMNS))[:, None]
    step = tl.arange(0, DEPTH)
    a_at = a + step[:, None] + row * lda if TRANSPOSED_A else a + step[:, None] * lda + row
    b_at = b + column + step[None, :] * ldb if TRANSPOSED_B else b + column * ldb + step[None, :]
    if EARLY:
        old = tl.load(c + column * ldc + row)
    total = tl.zeros((COLUMNS, ROWS), dtype=TYPE)
    for start in tl.range(0, k, DEPTH, num_stages=STAGES):
        x = tl.load(b_at, mask=(WHOLE_N | (column < n)) & (WHOLE_K | (step < k - start)[None, :]), other=0.0)
        y = tl.load(a_at, mask=(WHOLE_K | (step < k - start)[:, None]) & (WHOLE_M | (row < m)), other=0.0)
        total = tl.dot(x.to(TYPE), y.to(TYPE), total, input_precision="ieee", out_dtype=TYPE)
        b_at += ldb * DEPTH if TRANSPOSED_B else DEPTH
        a_at += DEPTH if TRANSPOSED_A else lda * DEPTH
    out = total.to(tl.float32) * alpha
    at = c + column * ldc + row
    inside = (WHOLE_N | (column < n)) & (WHOLE_M | (row < m))
    if READ_C and not EARLY:
        old = tl.load(at, mask=inside, other=0.0)
    if READ_C:
        out += old * beta
    tl.store(at, out, mask=inside)


@triton.jit(do_not_specialize=["m", "n", "k", "lda", "ldb", "ldc", "down", "across"])
def _gemm(
    a_array, b_array, c_array, m, n, k, lda, ldb, ldc, alpha, beta, down, across,
    TRANSPOSED_A: tl.constexpr, TRANSPOSED_B: tl.constexpr, WHOLE_M: tl.constexpr, WHOLE_N: tl.constexpr,
    WHOLE_K: tl.constexpr, READ_C: tl.constexpr, EARLY: tl.constexpr, ALIGNED: tl.constexpr, ALIGNED_C: tl.constexpr,
    TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of one C; ALIGNED: lda and ldb are multiples of 4, ALIGNED_C: ldc and m are so too."""
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    top, left = tile_row.to(tl.int64) * ROWS, tile_column.to(tl.int64) * COLUMNS
    k, lda, ldb, ldc = k.to(tl.int64), lda.to(tl.int64), ldb.to(tl.int64), ldc.to(tl.int64)
    a, b, c = tl.load(a_array + batch), tl.load(b_array + batch), tl.load(c_array + batch)
    if ALIGNED:
        lda, ldb = tl.multiple_of(lda, 4), tl.multiple_of(ldb, 4)
    if ALIGNED_C:
        ldc = tl.multiple_of(ldc, 4)
    every = a | b | c if ALIGNED_C else a | b
    aligned = (every & 15) == 0 if ALIGNED else False
    if aligned:
        _tile(
            a, b, c, m, n, k, lda, ldb, ldc, top, left, alpha, beta, TRANSPOSED_A, TRANSPOSED_B,
            WHOLE_M, WHOLE_N, WHOLE_K, READ_C, EARLY, ALIGNED, ALIGNED_C, None, TYPE, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip
    else:
        # Where both ways are compiled, this one must not cost the other registers and shared memory.
        _tile(
            a, b, c, m, n, k, lda, ldb, ldc, top, left, alpha, beta, TRANSPOSED_A, TRANSPOSED_B,
            WHOLE_M, WHOLE_N, WHOLE_K, READ_C, False, False, False, 1 if ALIGNED else None, TYPE, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip


def _tiles(m, n, k, batch):
    """Rows and columns of a tile, warps, stages."""
    if k > 256 and m % 128 == 0 and n % 64 == 0 and m * n * batch >= 64 * 128 * 132:
        return 128, 64, 8, 3
    rows, columns = (min(64, max(16, triton.next_power_of_2(size))) for size in (m, n))
    area = rows * columns
    return rows, columns, 1 if area <= 512 else 2 if area <= 1024 else 4, 3 if area <= 512 else 5


def cublasSgemmBatched_64(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    """Aarray, Barray, Carray: int64 addresses of column-major matrices. With beta 0 C is not read."""
    if m <= 0 or n <= 0 or batchCount <= 0:
        return
    if alpha == 0:
        k = 0  # neither A nor B counts then
    rows, columns, warps, stages = _tiles(m, n, k, batchCount)
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    whole_m, whole_n = m % rows == 0, n % columns == 0
    short = rows * columns <= 512 and k <= 256
    aligned = not short and lda % 4 == 0 and ldb % 4 == 0
    _gemm[(down * across * batchCount,)](
        Aarray, Barray, Carray, m, n, k, lda, ldb, ldc, float(alpha), float(beta), down, across,
        TRANSPOSED_A=transa != "N", TRANSPOSED_B=transb != "N", WHOLE_M=whole_m, WHOLE_N=whole_n, WHOLE_K=k % 16 == 0,
        READ_C=beta != 0, EARLY=beta != 0 and warps == 4 and whole_m and whole_n, ALIGNED=aligned,
        ALIGNED_C=aligned and ldc % 4 == 0 and m % 4 == 0, TYPE=tl.float32 if short else tl.float64,
        ROWS=rows, COLUMNS=columns, DEPTH=16, num_warps=warps, num_stages=stages, maxnreg=None if short else 128,
    )  # fmt: skip
