"""hadacore_transform: the rows of x times the normalized Hadamard matrix, in place, on tensor cores.

The matrix of size A * B is the Kronecker product of those of sizes A and B, so a long row is seen as a matrix (A, B)
and multiplied by one from each side; above 2^14 elements, sum and difference of its halves are. Short rows are put
together to 16 elements, times a matrix of blocks.
"""

import triton
import triton.language as tl


@triton.jit
def _hadamard(SIZE: tl.constexpr, BLOCK: tl.constexpr, dtype: tl.constexpr):
    """(SIZE, SIZE): Sylvester's matrix of size BLOCK along the diagonal, entries 1 and -1."""
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    # The sign is the parity of the bits that both indices have.
    bits = (i & j) & (BLOCK - 1)
    bits = bits ^ (bits >> 4)
    bits = bits ^ (bits >> 2)
    bits = bits ^ (bits >> 1)
    sign = tl.where((i // BLOCK) == (j // BLOCK), 1 - 2 * (bits & 1), 0)
    return sign.to(tl.float32).to(dtype)


@triton.jit
def _short(x_ptr, rows, programs, scale, COLUMNS: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr):
    """Rows of COLUMNS elements, in which transforms of SIZE elements lie side by side."""
    matrix = _hadamard(COLUMNS, SIZE, x_ptr.dtype.element_ty)
    column = tl.arange(0, COLUMNS)
    for tile in range(tl.program_id(0), (rows - 1) // ROWS + 1, programs):
        row = tile * ROWS + tl.arange(0, ROWS)
        at = x_ptr + (row.to(tl.int64) * COLUMNS)[:, None] + column[None, :]
        x = tl.load(at, mask=(row < rows)[:, None], other=0.0)
        y = tl.dot(x, matrix) * scale
        tl.store(at, y.to(x_ptr.dtype.element_ty), mask=(row < rows)[:, None])


@triton.jit
def _both_sides(x, left, right, left_scale, right_scale, dtype: tl.constexpr):
    y = (tl.dot(x, right) * right_scale).to(dtype)
    return (tl.dot(left, y) * left_scale).to(dtype)


@triton.jit
def _long(x_ptr, rows, programs, left_scale, right_scale, A: tl.constexpr, B: tl.constexpr, HALVES: tl.constexpr):
    """Rows of A * B elements, with HALVES of two times as many."""
    dtype = x_ptr.dtype.element_ty
    right = _hadamard(B, B, dtype)
    left = _hadamard(A, A, dtype)
    i = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    for row in range(tl.program_id(0), rows, programs):
        if HALVES:
            at = x_ptr + row.to(tl.int64) * (2 * A * B) + i
            x = tl.load(at).to(tl.float32)
            y = tl.load(at + A * B).to(tl.float32)
            total = ((x + y) * 0.7071067811865476).to(dtype)
            difference = ((x - y) * 0.7071067811865476).to(dtype)
            tl.store(at, _both_sides(total, left, right, left_scale, right_scale, dtype))
            tl.store(at + A * B, _both_sides(difference, left, right, left_scale, right_scale, dtype))
        else:
            at = x_ptr + row.to(tl.int64) * (A * B) + i
            tl.store(at, _both_sides(tl.load(at), left, right, left_scale, right_scale, dtype))


def hadacore_transform(x, inplace=True):
    """x: (…, n), dense, float16 or bfloat16, n a power of two up to 2^15."""
    n = x.shape[-1]
    if x.numel() == 0:
        return x
    if n <= 128:
        columns = max(n, 16)
        rows = x.numel() // columns
        tile = 64 if columns == 64 else 128
        full = columns == 128
        programs = min(triton.cdiv(rows, tile), 132 * (2 if full else 4))
        _short[(programs,)](
            x, rows, programs, float(n) ** -0.5, COLUMNS=columns, SIZE=n, ROWS=tile, num_warps=8 if full else 4,
            num_stages=2,
        )  # fmt: skip
        return x
    rows, halves = x.numel() // n, n > 1 << 14
    a = 128 if halves else 2 ** (n.bit_length() // 2)
    b = n // (2 * a) if halves else n // a
    # As many programs as 132 multiprocessors hold at once: each makes its matrices only once.
    per_multiprocessor, warps, stages = (
        (8, 4, 2) if n <= 4096 else (4, 4, 1) if n <= 8192 else (1, 8, 1) if halves else (2, 8, 1)
    )
    programs = min(rows, 132 * per_multiprocessor)
    _long[(programs,)](
        x, rows, programs, float(a) ** -0.5, float(b) ** -0.5, A=a, B=b, HALVES=halves, num_warps=warps,
        num_stages=stages,
    )  # fmt: skip
    return x
