"""cublasDcopy_v2: y = x, float64 vectors at given increments, moved as 64-bit integers so that every bit is kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy(x_ptr, y_ptr, n, x_first, x_step, y_step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i * y_step, tl.load(x_ptr + x_first + i * x_step, mask=i < n), mask=i < n)


def cublasDcopy_v2(n, x, incx, y, incy):
    """x, y: 1-D storage, element i at i * inc, or at (i + 1 - n) * inc where that is negative."""
    if n <= 0:
        return
    # y is walked upwards; x then goes downwards where one of the increments is negative.
    x_first, x_step = (0, abs(incx)) if (incx > 0) == (incy > 0) else ((n - 1) * abs(incx), -abs(incx))
    _copy[(triton.cdiv(n, 2048),)](
        x.view(torch.int64), y.view(torch.int64), n, x_first, x_step, abs(incy), BLOCK=2048, num_warps=8
    )
