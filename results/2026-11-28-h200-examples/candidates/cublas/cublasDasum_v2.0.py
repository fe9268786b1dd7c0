"""cublasDasum_v2: result[0] = sum of |x[i]| over n elements at a positive increment, float64.

Many programs sum a share each, one program sums the shares: no atomics, so two calls agree to the last bit.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _share(x_ptr, shares_ptr, n, incx, PER: tl.constexpr, BLOCK: tl.constexpr):
    """PER blocks of neighbouring elements, from which one number remains."""
    start = tl.program_id(0).to(tl.int64) * (PER * BLOCK) + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for block in tl.static_range(PER):
        i = start + block * BLOCK
        total += tl.abs(tl.load(x_ptr + i * incx, mask=i < n, other=0.0))
    tl.store(shares_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def _total(shares_ptr, result_ptr, count, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, count, BLOCK):
        total += tl.load(shares_ptr + first + i, mask=first + i < count, other=0.0)
    tl.store(result_ptr, tl.sum(total, axis=0))


def cublasDasum_v2(n, x, incx, result):
    """x: 1-D float64 storage, element i at i * incx; result: one float64, 0 for n = 0."""
    block, per = (1024, 4) if x.is_cuda else (1 << 18, 1)
    count = max(1, triton.cdiv(n, block * per))
    shares = torch.empty(count, dtype=x.dtype, device=x.device)
    _share[(count,)](x, result if count == 1 else shares, n, incx, PER=per, BLOCK=block, num_warps=8)
    if count > 1:
        _total[(1,)](shares, result, count, BLOCK=1024, num_warps=4)
