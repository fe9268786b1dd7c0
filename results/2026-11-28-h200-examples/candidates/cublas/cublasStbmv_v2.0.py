"""cublasStbmv_v2: x = op(A) x for a triangular band matrix A in float32, in place.

Every element needs old ones, so x is first copied to a buffer, element by element. Then a program sums some elements
of x over the diagonals, a tile of them at a time. Not transposed, neighbouring rows lie next to each other on a
diagonal; transposed, the elements of one row lie next to each other in a column of the band. Wherever no element of
the band is, the product is left out and not only the factor, since 0 times an infinite x would be NaN.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _gather(x_ptr, old_ptr, n, incx, first, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(old_ptr + i, tl.load(x_ptr + first + i * incx, mask=i < n), mask=i < n)


@triton.jit
def _band(
    a_ptr, old_ptr, x_ptr, n, diagonals, main, outwards, towards, lda, incx, first,
    TRANSPOSED: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """x of ROWS rows. The diagonal ``step`` off the main one has row i's element at column i + step * towards of op(A).

    It stands in row ``main + step * outwards`` of the band, in the column that it has in A as stored.
    """
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    if UNIT:
        sums = tl.load(old_ptr + i, mask=i < n, other=0.0)
        begin = 1
    else:
        sums = tl.zeros((ROWS,), tl.float32)
        begin = 0
    for start in range(begin, diagonals, STEPS):
        step = start + tl.arange(0, STEPS)
        j = i[:, None] + step[None, :] * towards
        inside = (i < n)[:, None] & (step < diagonals)[None, :] & (j >= 0) & (j < n)
        column = i[:, None] if TRANSPOSED else j
        a = tl.load(a_ptr + main + step[None, :] * outwards + column * lda, mask=inside, other=0.0)
        old = tl.load(old_ptr + j, mask=inside, other=0.0)
        sums += tl.sum(tl.where(inside, a * old, 0.0), axis=1)
    tl.store(x_ptr + first + i * incx, sums, mask=i < n)


def cublasStbmv_v2(uplo, trans, diag, n, k, A, lda, x, incx):
    """A: 1-D float32 storage of the band, its diagonals are its rows; x: storage, walked from its end by incx < 0."""
    if n == 0:
        return
    first = (1 - n) * incx if incx < 0 else 0
    old = torch.empty(n, dtype=x.dtype, device=x.device)
    wide = 1024 if x.is_cuda else 1 << 16
    _gather[(triton.cdiv(n, wide),)](x, old, n, incx, first, BLOCK=wide, num_warps=4)
    upper, transposed = uplo == "U", trans != "N"
    # Row i of an upper triangle needs later elements; transposed, an upper triangle is a lower one.
    main, outwards = (k, -1) if upper else (0, 1)
    towards = 1 if upper != transposed else -1
    diagonals = min(k, n - 1) + 1
    steps = min(triton.next_power_of_2(diagonals), 32 if x.is_cuda else 64)
    # In the interpreter as few programs as possible.
    rows = 64 if x.is_cuda else min(triton.next_power_of_2(n), 8192)
    _band[(triton.cdiv(n, rows),)](
        A, old, x, n, diagonals, main, outwards, towards, lda, incx, first,
        TRANSPOSED=transposed, UNIT=diag == "U", ROWS=rows, STEPS=steps, num_warps=4,
    )  # fmt: skip
