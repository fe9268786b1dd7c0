"""cublasCcopy_v2: y = x for complex64 vectors at given increments. One element is moved as one word of 64 bits."""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy(x_ptr, y_ptr, n, incx, incy, x_first, y_first, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x_ptr + x_first + i * incx, mask=i < n)
    tl.store(y_ptr + y_first + i * incy, word, mask=i < n)


def _first(n, increment):
    """Where element 0 lies: a negative increment walks from the far end."""
    return (1 - n) * increment if increment < 0 else 0


def cublasCcopy_v2(n, x, incx, y, incy):
    """x, y: 1-D complex64 storage, element i at i * inc, or at (i + 1 - n) * inc where that is negative."""
    if n == 0:
        return
    block = 1024 if y.is_cuda else 1 << 18
    # As integers, whose bits no load or store touches.
    words = (x.view(torch.int64), y.view(torch.int64))
    _copy[(triton.cdiv(n, block),)](*words, n, incx, incy, _first(n, incx), _first(n, incy), BLOCK=block, num_warps=4)
