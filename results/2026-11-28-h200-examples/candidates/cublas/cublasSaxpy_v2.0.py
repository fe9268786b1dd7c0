"""cublasSaxpy_v2: y = alpha * x + y for float32 vectors at given increments."""

import triton
import triton.language as tl


@triton.jit
def _axpy(x_ptr, y_ptr, n, alpha, incx, incy, x_first, y_first, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + x_first + i * incx, mask=i < n)
    at = y_ptr + y_first + i * incy
    tl.store(at, alpha * x + tl.load(at, mask=i < n), mask=i < n)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasSaxpy_v2(n, alpha, x, incx, y, incy):
    """x, y: 1-D float32 storage, element i at i * inc, or at (i + 1 - n) * inc where that is negative."""
    if n == 0 or alpha == 0:
        return  # with alpha 0 x does not count, not even its NaNs
    block = 1024 if y.is_cuda else 1 << 18
    grid = (triton.cdiv(n, block),)
    _axpy[grid](x, y, n, float(alpha), incx, incy, _first(n, incx), _first(n, incy), BLOCK=block, num_warps=4)
