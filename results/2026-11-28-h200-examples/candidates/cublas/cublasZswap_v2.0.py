"""cublasZswap_v2: x and y exchanged, complex128 vectors at given increments.

A complex number is two words of 64 bits, and a program moves words: neighbouring ones by neighbouring threads. Both
vectors are loaded before either is stored, and no two programs have an element in common.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _swap(x_ptr, y_ptr, n, incx, incy, x_first, y_first, BLOCK: tl.constexpr):
    word = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    i, part = word // 2, word % 2
    x_at = x_ptr + 2 * (x_first + i * incx) + part
    y_at = y_ptr + 2 * (y_first + i * incy) + part
    x = tl.load(x_at, mask=i < n)
    y = tl.load(y_at, mask=i < n)
    tl.store(x_at, y, mask=i < n)
    tl.store(y_at, x, mask=i < n)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasZswap_v2(n, x, incx, y, incy):
    """x, y: 1-D complex128 storage, element i at i * inc, or at (i + 1 - n) * inc where that is negative."""
    if n == 0:
        return
    block = 1024 if y.is_cuda else 1 << 18
    words = (x.view(torch.int64), y.view(torch.int64))
    grid = (triton.cdiv(2 * n, block),)
    _swap[grid](*words, n, incx, incy, _first(n, incx), _first(n, incy), BLOCK=block, num_warps=4)
