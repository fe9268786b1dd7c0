"""hadacore_transform: the rows of x times the normalized Hadamard matrix, in place, on tensor cores.

The matrix of size A * B is the Kronecker product of those of sizes A and B, so a long row is seen as a matrix (A, B)
and multiplied by one from each side; above 2^13 elements, sums and differences of its quarters or halves are. Short
rows are put together to 16 elements, times a matrix of blocks.
"""

import triton
import triton.language as tl


@triton.jit
def _hadamard(SIZE: tl.constexpr, BLOCK: tl.constexpr, dtype: tl.constexpr):
    """(SIZE, SIZE), at most 256: Sylvester's matrix of size BLOCK along the diagonal, entries 1 and -1."""
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    # The sign is the parity of the bits that both indices have.
    bits = (i & j) & (BLOCK - 1)
    bits = (bits ^ (bits >> 4)) & 15
    # Bit b of 0x6996 is the parity of b; it becomes the sign bit of a one.
    sign = ((bits * 0 + 0x6996) >> bits) << 15
    one: tl.constexpr = 0x3F80 if dtype == tl.bfloat16 else 0x3C00
    entry = (sign & 0x8000) | one
    if BLOCK < SIZE:
        entry = tl.where((i // BLOCK) == (j // BLOCK), entry, 0)
    return entry.to(tl.int16).to(dtype, bitcast=True)


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
    # From the left first: the result is the left operand of the second product and stays in registers.
    y = (tl.dot(left, x.to(dtype)) * left_scale).to(dtype)
    return (tl.dot(y, right) * right_scale).to(dtype)


@triton.jit
def _long(x_ptr, rows, programs, left_scale, right_scale, A: tl.constexpr, B: tl.constexpr):
    """Rows of A * B elements."""
    dtype = x_ptr.dtype.element_ty
    left = _hadamard(A, A, dtype)
    right = left if A == B else _hadamard(B, B, dtype)
    i = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    for row in range(tl.program_id(0), rows, programs):
        at = x_ptr + row.to(tl.int64) * (A * B) + i
        tl.store(at, _both_sides(tl.load(at), left, right, left_scale, right_scale, dtype))


@triton.jit
def _quarters(x_ptr, rows, programs, scale, A: tl.constexpr):
    """Rows of 4 * A * A elements."""
    dtype = x_ptr.dtype.element_ty
    matrix = _hadamard(A, A, dtype)
    i = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    for row in range(tl.program_id(0), rows, programs):
        at = x_ptr + row.to(tl.int64) * (4 * A * A) + i
        x0 = tl.load(at).to(tl.float32)
        x1 = tl.load(at + A * A).to(tl.float32)
        x2 = tl.load(at + 2 * A * A).to(tl.float32)
        x3 = tl.load(at + 3 * A * A).to(tl.float32)
        sum01, difference01 = (x0 + x1) * 0.5, (x0 - x1) * 0.5
        sum23, difference23 = (x2 + x3) * 0.5, (x2 - x3) * 0.5
        tl.store(at, _both_sides(sum01 + sum23, matrix, matrix, scale, scale, dtype))
        tl.store(at + A * A, _both_sides(difference01 + difference23, matrix, matrix, scale, scale, dtype))
        tl.store(at + 2 * A * A, _both_sides(sum01 - sum23, matrix, matrix, scale, scale, dtype))
        tl.store(at + 3 * A * A, _both_sides(difference01 - difference23, matrix, matrix, scale, scale, dtype))


@triton.jit
def _halves(x_ptr, rows, programs, scale, A: tl.constexpr):
    """Rows of 2 * A * A elements."""
    dtype = x_ptr.dtype.element_ty
    matrix = _hadamard(A, A, dtype)
    i = tl.arange(0, A)[:, None] * A + tl.arange(0, A)[None, :]
    for row in range(tl.program_id(0), rows, programs):
        at = x_ptr + row.to(tl.int64) * (2 * A * A) + i
        x = tl.load(at).to(tl.float32)
        y = tl.load(at + A * A).to(tl.float32)
        total = ((x + y) * 0.7071067811865476).to(dtype)
        difference = ((x - y) * 0.7071067811865476).to(dtype)
        tl.store(at, _both_sides(total, matrix, matrix, scale, scale, dtype))
        tl.store(at + A * A, _both_sides(difference, matrix, matrix, scale, scale, dtype))


def hadacore_transform(x, inplace=True):
    """x: (…, n), dense, float16 or bfloat16, n a power of two up to 2^15."""
    n = x.shape[-1]
    if x.numel() == 0:
        return x
    # As many programs as 132 multiprocessors hold at once: each makes its matrices only once.
    if n <= 128:
        columns = max(n, 16)
        rows = x.numel() // columns
        tile = 128 if columns <= 32 else 64
        full = columns == 128
        programs = min(triton.cdiv(rows, tile), 132 * (2 if full else 4))
        _short[(programs,)](
            x, rows, programs, float(n) ** -0.5, COLUMNS=columns, SIZE=n, ROWS=tile, num_warps=4,
            num_stages=3 if full else 2,
        )  # fmt: skip
        return x
    rows = x.numel() // n
    if n <= 1 << 13:
        a = 2 ** (n.bit_length() // 2)
        b = n // a
        programs = min(rows, 132 * (8 if n < 4096 else 5 if n == 4096 else 4))
        _long[(programs,)](x, rows, programs, float(a) ** -0.5, float(b) ** -0.5, A=a, B=b, num_warps=4, num_stages=2)
    elif n == 1 << 14:
        # Half the work of two products with matrices of size 128, and two programs fit on a multiprocessor.
        programs = min(rows, 132 * 2)
        _quarters[(programs,)](x, rows, programs, 0.125, A=64, num_warps=4, num_stages=1)
    else:
        programs = min(rows, 132)
        _halves[(programs,)](x, rows, programs, 128**-0.5, A=128, num_warps=8, num_stages=1)
    return x
