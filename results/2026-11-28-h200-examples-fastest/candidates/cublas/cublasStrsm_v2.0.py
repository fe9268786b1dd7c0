"""cublasStrsm_v2: solves op(A) X = alpha B or X op(A) = alpha B for a triangular A and puts X into B, float32.

Every case is turned into T X = alpha B with a lower triangular T: X op(A) = B is op(A)^T X^T = B^T, and an upper
triangle is a lower one when rows and columns are counted from the end. First the blocks on T's diagonal are inverted. A
panel of rows is solved by one kernel; a longer system is halved: one half is solved, its product taken off the other,
that solved. Sums are in float64, for which there are tensor cores.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _load(at, inside, WHOLE: tl.constexpr):
    """WHOLE: all of it is inside."""
    if WHOLE:
        return tl.load(at)
    else:
        return tl.load(at, mask=inside, other=0.0)


@triton.jit
def _store(at, value, inside, WHOLE: tl.constexpr):
    if WHOLE:
        tl.store(at, value)
    else:
        tl.store(at, value, mask=inside)


@triton.jit
def _dot(x, y, total):
    return tl.dot(x.to(tl.float64), y.to(tl.float64), total, input_precision="ieee", out_dtype=tl.float64)


@triton.jit
def _invert(t_ptr, inverse_ptr, size, t_row, t_column, UNIT: tl.constexpr, BLOCK: tl.constexpr):
    """Inverts 16 rows on T's diagonal into their place in a block of BLOCK; beyond the edge T is the identity."""
    first = tl.program_id(0).to(tl.int64) * 16
    i = tl.arange(0, 16)
    row = first + i
    inverse = tl.where(i[:, None] == i[None, :], 1.0, 0.0).to(tl.float64)
    for step in tl.static_range(16):
        column = first + step
        below = i > step
        at = t_ptr + row * t_row + column * t_column
        factor = tl.load(at, mask=below & (row < size), other=0.0).to(tl.float64)[:, None]
        current = (i == step)[:, None]
        solved = tl.sum(tl.where(current, inverse, 0.0), axis=0)[None, :]
        if not UNIT:
            # Not times t_row + t_column, which may leave 32 bits.
            at = t_ptr + column * t_row + column * t_column
            solved /= tl.load(at, mask=column < size, other=1.0).to(tl.float64)
        inverse = tl.where(current, solved, tl.where(below[:, None], inverse - factor * solved, inverse))
    at = inverse_ptr + first * BLOCK + tl.program_id(0) % (BLOCK // 16) * 16
    tl.store(at + i[:, None] * BLOCK + i[None, :], inverse)


@triton.jit(do_not_specialize_on_alignment=["t_row", "t_column"])
def _join(t_ptr, inverse_ptr, size, t_row, t_column, HALF: tl.constexpr, BLOCK: tl.constexpr):
    """Puts two inverted blocks of HALF rows together: below them goes -second @ T @ first; 16 columns a program."""
    pair = tl.program_id(0).to(tl.int64) // (HALF // 16)
    i = tl.arange(0, HALF)
    column = tl.program_id(0) % (HALF // 16) * 16 + tl.arange(0, 16)
    above = pair * (2 * HALF)
    row, step = above + HALF + i, above + i
    at = t_ptr + row[:, None] * t_row + step[None, :] * t_column
    t = tl.load(at, mask=(row < size)[:, None] & (step < size)[None, :], other=0.0)
    inverse_ptr += above * BLOCK + pair % (BLOCK // (2 * HALF)) * (2 * HALF)
    first = tl.load(inverse_ptr + i[:, None] * BLOCK + column[None, :])
    inverse_ptr += HALF * BLOCK
    second = tl.load(inverse_ptr + HALF + i[:, None] * BLOCK + i[None, :])
    zero = tl.zeros((HALF, 16), tl.float64)
    tl.store(inverse_ptr + i[:, None] * BLOCK + column[None, :], -_dot(second, _dot(t, first, zero), zero))


@triton.jit(do_not_specialize=["scale"])
def _panel(
    t_ptr, inverse_ptr, b_ptr, size, columns, scale, t_row, t_column, b_row, b_column,
    WHOLE: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of X for ``size`` rows, block by block; what is solved is read back from where it was put."""
    i = tl.arange(0, BLOCK).to(tl.int64)
    j = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    in_column = (column < columns)[None, :]
    for block in range(tl.cdiv(size, BLOCK)):
        first = block * BLOCK
        row = first + i
        at = b_ptr + row[:, None] * b_row + column[None, :] * b_column
        in_row = (row < size)[:, None]
        inside = in_row & in_column
        factor = scale
        if block > 0:
            t_at = t_ptr + row[:, None] * t_row + j[None, :] * t_column
            x_at = b_ptr + j[:, None] * b_row + column[None, :] * b_column
            given = tl.zeros((BLOCK, COLUMNS), tl.float64)
            for _ in range(0, first, DEPTH):
                given = _dot(_load(t_at, in_row, WHOLE), _load(x_at, in_column, WHOLE), given)
                t_at += deep * t_column
                x_at += deep * b_row
            rest = _load(at, inside, WHOLE) * scale - given.to(tl.float32)
            _store(at, rest, inside, WHOLE)
            # Other threads load these rows.
            tl.debug_barrier()
            factor = 1.0
        inverse_at = inverse_ptr + row[:, None] * BLOCK + j[None, :]
        x_at = b_ptr + (first + j)[:, None] * b_row + column[None, :] * b_column
        x = tl.zeros((BLOCK, COLUMNS), tl.float64)
        for start in range(0, BLOCK, DEPTH):
            rest = _load(x_at, (first + start + j < size)[:, None] & in_column, WHOLE)
            x = _dot(tl.load(inverse_at), rest, x)
            inverse_at += DEPTH
            x_at += deep * b_row
        tl.debug_barrier()
        _store(at, (x * factor).to(tl.float32), inside, WHOLE)
        tl.debug_barrier()


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 columns: tiles of one time share operands in the cache."""
    band = 8 * down
    first = tile // band * 8
    width = tl.minimum(across - first, 8)
    return tile % band // width, first + tile % band % width


@triton.jit(do_not_specialize=["scale"])
def _update(
    x_ptr, y_ptr, c_ptr, rows, columns, depth, scale, x_row, x_depth, y_depth, y_column, c_row, c_column,
    WHOLE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of c (rows, columns) = scale * c - x (rows, depth) @ y (depth, columns); DEPTH divides depth."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    tile_column, tile_row = _place(tl.program_id(0), (columns - 1) // COLUMNS + 1, (rows - 1) // ROWS + 1)
    row = tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    x_at = x_ptr + row[:, None] * x_row + step[None, :] * x_depth
    y_at = y_ptr + step[:, None] * y_depth + column[None, :] * y_column
    in_row, in_column = (row < rows)[:, None], (column < columns)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for _ in range(0, depth, DEPTH):
        total = _dot(_load(x_at, in_row, WHOLE), _load(y_at, in_column, WHOLE), total)
        x_at += deep * x_depth
        y_at += deep * y_depth
    at = c_ptr + row[:, None] * c_row + column[None, :] * c_column
    inside = in_row & in_column
    _store(at, _load(at, inside, WHOLE) * scale - total.to(tl.float32), inside, WHOLE)


def _tiles(rows, columns):
    """Tile of an update and its warps: as large as leaves enough tiles for the GPU."""
    tall = min(64, max(16, triton.next_power_of_2(rows)))
    wide = min(128, max(16, triton.next_power_of_2(columns)))
    while triton.cdiv(rows, tall) * triton.cdiv(columns, wide) < 120 and max(tall, wide) > 32:
        if wide >= tall:
            wide //= 2
        else:
            tall //= 2
    area = tall * wide
    return tall, wide, 1 if area <= 512 else 2 if area <= 1024 else 4 if area <= 4096 else 8


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    """A, B: 1-D float32 storage, element (i, j) at i + j * ld; only A's named triangle is read, B becomes X."""
    if m == 0 or n == 0:
        return
    left, transposed = side == "L", trans != "N"
    size, columns = (m, n) if left else (n, m)
    t_row, t_column = (1, lda) if transposed != left else (lda, 1)
    b_row, b_column = (1, ldb) if left else (ldb, 1)
    t_start = b_start = 0
    if (uplo == "L") != (transposed != left):
        t_start, b_start = (size - 1) * (lda + 1), (size - 1) * b_row
        t_row, t_column, b_row = -t_row, -t_column, -b_row

    # The inverse of a unit triangle may have far larger elements than X; those of few rows stay small.
    block = max(16, min(32 if diag == "U" else 128, triton.next_power_of_2(size)))
    blocks = triton.cdiv(size, block)
    inverse = torch.zeros(blocks * block * block, dtype=torch.float64, device=A.device)
    args = A[t_start:], inverse, size, t_row, t_column
    _invert[(blocks * block // 16,)](*args, UNIT=diag == "U", BLOCK=block, num_warps=1)
    half = 16
    while half < block:
        _join[(blocks * block // 32,)](*args, HALF=half, BLOCK=block, num_warps=half // 16)
        half *= 2

    wide = 16 if columns < 3072 else 32 if columns < 6144 else 64
    panel = 256 if wide == 64 else 512

    def t_at(row, column):
        return A[t_start + row * t_row + column * t_column :]

    def b_at(row):
        return B[b_start + row * b_row :]

    def solve(first, last, scale):
        if last - first <= panel:
            _panel[(triton.cdiv(columns, wide),)](
                t_at(first, first), inverse[first * block :], b_at(first), last - first, columns, float(scale),
                t_row, t_column, b_row, b_column, WHOLE=(last - first) % block == 0 and columns % wide == 0,
                BLOCK=block, COLUMNS=wide, DEPTH=16, num_warps=block // 16, num_stages=3,
            )  # fmt: skip
            return
        middle = first + triton.cdiv(triton.cdiv(last - first, panel), 2) * panel
        solve(first, middle, scale)
        update(first, middle, last, scale)
        solve(middle, last, 1.0)

    def update(first, middle, last, scale):
        """Takes what the rows from first to middle give off the rows from middle to last."""
        t, solved, rest = t_at(middle, first), b_at(first), b_at(middle)
        # The last axis of a tile runs along B's memory: side 'L' works on transposes.
        if left:
            operands, sizes = (solved, t, rest), (columns, last - middle)
            strides = b_column, b_row, t_column, t_row, b_column, b_row
        else:
            operands, sizes = (t, solved, rest), (last - middle, columns)
            strides = t_row, t_column, b_row, b_column, b_row, b_column
        tall, across, warps = _tiles(*sizes)
        whole = sizes[0] % tall == 0 and sizes[1] % across == 0
        _update[(triton.cdiv(sizes[0], tall) * triton.cdiv(sizes[1], across),)](
            *operands, *sizes, middle - first, float(scale), *strides, WHOLE=whole,
            ROWS=tall, COLUMNS=across, DEPTH=16, num_warps=warps, num_stages=3,
            maxnreg=128 if warps == 8 and whole else None,
        )  # fmt: skip

    solve(0, size, alpha)
