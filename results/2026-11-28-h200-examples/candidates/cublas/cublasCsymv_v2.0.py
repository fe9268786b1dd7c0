"""cublasCsymv_v2: y = alpha * A x + beta * y for a symmetric complex64 A of which one triangle is given.

The given triangle is cut into square tiles, each read once: it stands in A twice, as it is and mirrored, so a tile
gives a part of the sums of its rows and one of the sums of its columns. With parts (blocks, n), where part b of row i
comes from the tile of row i and the columns of block b, every part is written by exactly one program: no atomics. Then
the parts are summed. A complex number is a pair of floats, real part first; nothing is conjugated.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _products(a_ptr, x_ptr, parts_ptr, n, late_stride, early_stride, incx, x_first, BLOCK: tl.constexpr):
    """The parts that the tile of rows ``late`` and columns ``early`` of the lower triangle gives."""
    late_block, early_block = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    if early_block <= late_block:
        late = late_block * BLOCK + tl.arange(0, BLOCK)
        early = early_block * BLOCK + tl.arange(0, BLOCK)
        given = (late < n)[:, None] & (early[None, :] <= late[:, None])
        strict = (late < n)[:, None] & (early[None, :] < late[:, None])
        at = a_ptr + 2 * (late[:, None] * late_stride + early[None, :] * early_stride)
        real = tl.load(at, mask=given, other=0.0)
        imag = tl.load(at + 1, mask=given, other=0.0)
        x_at = x_ptr + 2 * (x_first + early * incx)
        x_real = tl.load(x_at, mask=early < n, other=0.0)[None, :]
        x_imag = tl.load(x_at + 1, mask=early < n, other=0.0)[None, :]
        # Where nothing is given an infinite x would make 0 * inf: the products are left out, not only the factors.
        row_real = tl.sum(tl.where(given, real * x_real - imag * x_imag, 0.0), axis=1)
        row_imag = tl.sum(tl.where(given, real * x_imag + imag * x_real, 0.0), axis=1)
        x_at = x_ptr + 2 * (x_first + late * incx)
        x_real = tl.load(x_at, mask=late < n, other=0.0)[:, None]
        x_imag = tl.load(x_at + 1, mask=late < n, other=0.0)[:, None]
        column_real = tl.sum(tl.where(strict, real * x_real - imag * x_imag, 0.0), axis=0)
        column_imag = tl.sum(tl.where(strict, real * x_imag + imag * x_real, 0.0), axis=0)
        rows_at = parts_ptr + 2 * (early_block * n + late)
        columns_at = parts_ptr + 2 * (late_block * n + early)
        if early_block == late_block:
            tl.store(rows_at, row_real + column_real, mask=late < n)
            tl.store(rows_at + 1, row_imag + column_imag, mask=late < n)
        else:
            tl.store(rows_at, row_real, mask=late < n)
            tl.store(rows_at + 1, row_imag, mask=late < n)
            tl.store(columns_at, column_real)
            tl.store(columns_at + 1, column_imag)


@triton.jit
def _combine(
    parts_ptr, y_ptr, blocks, n, alpha_real, alpha_imag, beta_real, beta_imag, incy, y_first,
    READ_Y: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = alpha * (the sum of the parts) + beta * y; with ``blocks`` 0 nothing is summed."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = tl.zeros((BLOCK,), tl.float32)
    imag = tl.zeros((BLOCK,), tl.float32)
    at = parts_ptr + 2 * i
    for _ in range(blocks):
        real += tl.load(at, mask=i < n, other=0.0)
        imag += tl.load(at + 1, mask=i < n, other=0.0)
        at += 2 * n
    y_real = alpha_real * real - alpha_imag * imag
    y_imag = alpha_real * imag + alpha_imag * real
    at = y_ptr + 2 * (y_first + i * incy)
    if READ_Y:
        old_real = tl.load(at, mask=i < n, other=0.0)
        old_imag = tl.load(at + 1, mask=i < n, other=0.0)
        y_real += beta_real * old_real - beta_imag * old_imag
        y_imag += beta_real * old_imag + beta_imag * old_real
    tl.store(at, y_real, mask=i < n)
    tl.store(at + 1, y_imag, mask=i < n)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasCsymv_v2(uplo, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D complex64 storage; A(i, j) at i + j * lda, its named triangle is read. With beta 0 y is not read."""
    if n == 0:
        return
    alpha, beta = complex(alpha), complex(beta)
    block = 64 if y.is_cuda else max(16, min(512, triton.next_power_of_2(n)))
    blocks = triton.cdiv(n, block) if alpha != 0 else 0  # with alpha 0 neither A nor x counts, not even their NaNs
    parts = torch.empty((max(blocks, 1), n, 2), dtype=torch.float32, device=y.device)
    a_numbers, x_numbers, y_numbers = (torch.view_as_real(each) for each in (A, x, y))
    if blocks:
        strides = (1, lda) if uplo == "L" else (lda, 1)
        _products[(blocks, blocks)](
            a_numbers, x_numbers, parts, n, *strides, incx, _first(n, incx), BLOCK=block, num_warps=4
        )
    wide = 128 if y.is_cuda else 1 << 16
    _combine[(triton.cdiv(n, wide),)](
        parts, y_numbers, blocks, n, alpha.real, alpha.imag, beta.real, beta.imag, incy, _first(n, incy),
        READ_Y=beta != 0, BLOCK=wide, num_warps=4,
    )  # fmt: skip
