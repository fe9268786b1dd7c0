"""cublasSdot_v2: result[0] = sum of x[i] * y[i] over n elements at given increments.

Many programs sum a share each, one program sums the shares: no atomics, so two calls agree to the last bit.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _share(x_ptr, y_ptr, shares_ptr, n, incx, incy, x_first, y_first, PER: tl.constexpr, BLOCK: tl.constexpr):
    """PER blocks of neighbouring elements, from which one float32 remains."""
    start = tl.program_id(0).to(tl.int64) * (PER * BLOCK) + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for block in tl.static_range(PER):
        i = start + block * BLOCK
        x = tl.load(x_ptr + x_first + i * incx, mask=i < n, other=0.0)
        y = tl.load(y_ptr + y_first + i * incy, mask=i < n, other=0.0)
        total += x * y
    tl.store(shares_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def _total(shares_ptr, result_ptr, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        total += tl.load(shares_ptr + first + i, mask=first + i < count, other=0.0)
    tl.store(result_ptr, tl.sum(total, axis=0))


def cublasSdot_v2(n, x, incx, y, incy, result):
    """x, y: 1-D float32 storage; a negative increment walks from the far end: element i lies at (i + 1 - n) * inc."""
    block, per = (1024, 4) if x.is_cuda else (1 << 18, 1)
    count = max(1, triton.cdiv(n, block * per))
    shares = torch.empty(count, dtype=x.dtype, device=x.device)
    x_first = (1 - n) * incx if incx < 0 and n > 0 else 0
    y_first = (1 - n) * incy if incy < 0 and n > 0 else 0
    only = result if count == 1 else shares
    _share[(count,)](x, y, only, n, incx, incy, x_first, y_first, PER=per, BLOCK=block, num_warps=8)
    if count > 1:
        _total[(1,)](shares, result, count, BLOCK=1024, num_warps=4)
