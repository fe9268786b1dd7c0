"""cublasStrsv_v2: solves op(A) x = b for a triangular A, b given in x, float32.

Every case is turned into T x = b with a lower triangular T: an upper triangle is a lower one when rows and columns are
counted from the end. First the blocks on T's diagonal are inverted, all at once. Then each program takes two blocks of
rows: it takes off the products with the parts of x that earlier programs publish, solves its rows and publishes them.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _own(place, n, UPPER: tl.constexpr):
    """Row of op(A) that is row ``place`` of T."""
    if UPPER:
        return n - 1 - place
    else:
        return place


@triton.jit
def _at(a_ptr, row, column, lda, TRANSPOSED: tl.constexpr):
    """Where op(A)'s elements lie; row and column have 64 bits."""
    if TRANSPOSED:
        return a_ptr + row * lda + column
    else:
        return a_ptr + column * lda + row


@triton.jit(do_not_specialize=["n", "lda", "unit"])
def _invert(a_ptr, inverse_ptr, n, lda, unit, TRANSPOSED: tl.constexpr, UPPER: tl.constexpr, BLOCK: tl.constexpr):
    """inverse (blocks, BLOCK, BLOCK), float64: each diagonal block of T, beyond the edge the identity."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    i = tl.arange(0, BLOCK)
    place = first + i
    row = _own(place, n, UPPER)
    inverse = tl.where(i[:, None] == i[None, :], 1.0, 0.0).to(tl.float64)
    for step in tl.static_range(BLOCK):
        column = _own(first + step, n, UPPER)
        below = i > step
        at = _at(a_ptr, row, column, lda, TRANSPOSED)
        factor = tl.load(at, mask=below & (place < n), other=0.0).to(tl.float64)[:, None]
        at = _at(a_ptr, column, column, lda, TRANSPOSED)
        diagonal = tl.load(at, mask=(unit == 0) & (first + step < n), other=1.0).to(tl.float64)
        current = (i == step)[:, None]
        solved = (tl.sum(tl.where(current, inverse, 0.0), axis=0) / diagonal)[None, :]
        inverse = tl.where(current, solved, tl.where(below[:, None], inverse - factor * solved, inverse))
    tl.store(inverse_ptr + first * BLOCK + i[:, None] * BLOCK + i[None, :], inverse)


@triton.jit
def _products(
    a_ptr, row, inside, solved_ptr, published_ptr, count, n, lda,
    TRANSPOSED: tl.constexpr, UPPER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """(ROWS,): T's rows times the first ``count`` parts of x, as soon as these are published."""
    total = tl.zeros((ROWS, ROWS), dtype=tl.float32)
    published = count * 0
    for part in range(count):
        place = part * ROWS + tl.arange(0, ROWS).to(tl.int64)
        column = _own(place, n, UPPER)
        # The tile is loaded before the wait, and lies as in memory.
        if TRANSPOSED:
            at = _at(a_ptr, row[:, None], column[None, :], lda, TRANSPOSED)
            t = tl.load(at, mask=inside[:, None], other=0.0)
        else:
            at = _at(a_ptr, row[None, :], column[:, None], lda, TRANSPOSED)
            t = tl.load(at, mask=inside[None, :], other=0.0)
        while published <= part:
            published = tl.atomic_add(published_ptr, 0)
        # Past the first cache, which may hold what was there before.
        x = tl.load(solved_ptr + place, cache_modifier=".cg")
        if TRANSPOSED:
            total += t * x[None, :]
        else:
            total += t * x[:, None]
    return tl.sum(total, axis=1 if TRANSPOSED else 0)


@triton.jit(do_not_specialize=["n", "lda", "incx", "begin"])
def _solve(
    a_ptr, x_ptr, solved_ptr, inverse_ptr, counts_ptr, n, lda, incx, begin,
    TRANSPOSED: tl.constexpr, UPPER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """2 * BLOCK rows of T; counts are the programs that have started and the parts of x that are published."""
    # In the order of starting, so that a program only waits for those that run already.
    program = tl.atomic_add(counts_ptr, 1)
    first = program.to(tl.int64) * (2 * BLOCK)
    i = tl.arange(0, BLOCK)
    place = first + tl.arange(0, 2 * BLOCK)
    row, inside = _own(place, n, UPPER), place < n
    # What the end needs is loaded now.
    at = inverse_ptr + first * BLOCK + i[:, None] * BLOCK + i[None, :]
    inverse0 = tl.load(at)
    inverse1 = tl.load(at + BLOCK * BLOCK)
    place0 = first + i
    place1 = place0 + BLOCK
    row0 = _own(place0, n, UPPER)
    row1 = _own(place1, n, UPPER)
    at = _at(a_ptr, row1[:, None], row0[None, :], lda, TRANSPOSED)
    below = tl.load(at, mask=(place1 < n)[:, None] & (place0 < n)[None, :], other=0.0)
    rest = tl.load(x_ptr + begin + row * incx, mask=inside, other=0.0)
    rest -= _products(a_ptr, row, inside, solved_ptr, counts_ptr + 1, program, n, lda, TRANSPOSED, UPPER, 2 * BLOCK)
    rest0, rest1 = tl.split(tl.trans(tl.reshape(rest, (2, BLOCK))))
    x0 = tl.sum(inverse0 * rest0.to(tl.float64)[None, :], axis=1).to(tl.float32)
    rest1 -= tl.sum(below * x0[None, :], axis=1)
    x1 = tl.sum(inverse1 * rest1.to(tl.float64)[None, :], axis=1).to(tl.float32)
    tl.store(solved_ptr + place0, x0, mask=place0 < n)
    tl.store(solved_ptr + place1, x1, mask=place1 < n)
    # Every thread has stored its elements before one of them publishes.
    tl.debug_barrier()
    tl.atomic_add(counts_ptr + 1, 1)
    tl.store(x_ptr + begin + row0 * incx, x0, mask=place0 < n)
    tl.store(x_ptr + begin + row1 * incx, x1, mask=place1 < n)


def cublasStrsv_v2(uplo, trans, diag, n, A, lda, x, incx):
    """A: 1-D float32 storage, element (i, j) at i + j * lda, its named triangle is read; x: storage, b becomes x."""
    if n == 0:
        return
    begin = (1 - n) * incx if incx < 0 else 0
    transposed = trans != "N"
    upper = (uplo == "U") != transposed
    block = 16 if n <= 256 else 32
    programs = triton.cdiv(n, 2 * block)
    inverse = torch.empty((2 * programs, block, block), dtype=torch.float64, device=A.device)
    solved = torch.empty(n, dtype=torch.float32, device=A.device)
    counts = torch.zeros(2, dtype=torch.int32, device=A.device)
    _invert[(2 * programs,)](
        A, inverse, n, lda, int(diag == "U"), TRANSPOSED=transposed, UPPER=upper, BLOCK=block, num_warps=4
    )
    _solve[(programs,)](
        A, x, solved, inverse, counts, n, lda, incx, begin, TRANSPOSED=transposed, UPPER=upper, BLOCK=block,
        num_warps=4,
    )  # fmt: skip
