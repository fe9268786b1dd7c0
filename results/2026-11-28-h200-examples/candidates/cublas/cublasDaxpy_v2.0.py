"""cublasDaxpy_v2: y = alpha * x + y, float64 vectors at given increments."""

import triton
import triton.language as tl


@triton.jit
def _axpy(x_ptr, y_ptr, n, alpha: tl.float64, x_first, x_step, y_step, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + x_first + i * x_step, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i * y_step, mask=i < n, other=0.0)
    tl.store(y_ptr + i * y_step, alpha * x + y, mask=i < n)


def cublasDaxpy_v2(n, alpha, x, incx, y, incy):
    """x, y: 1-D storage, element i at i * inc, or at (i + 1 - n) * inc where that is negative."""
    if n <= 0 or alpha == 0:
        return
    # y is walked upwards; x then goes downwards where one of the increments is negative.
    x_first, x_step = (0, abs(incx)) if (incx > 0) == (incy > 0) else ((n - 1) * abs(incx), -abs(incx))
    _axpy[(triton.cdiv(n, 2048),)](x, y, n, float(alpha), x_first, x_step, abs(incy), BLOCK=2048, num_warps=8)
