"""cublasSscal_v2: x = alpha * x for a float32 vector at a positive increment, in place."""

import triton
import triton.language as tl


@triton.jit
def _scale(x_ptr, n, alpha, incx, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = x_ptr + i * incx
    tl.store(at, alpha * tl.load(at, mask=i < n), mask=i < n)


def cublasSscal_v2(n, alpha, x, incx):
    """x: 1-D float32 storage, element i at i * incx; what lies between is not touched."""
    if n == 0:
        return
    block = 1024 if x.is_cuda else 1 << 18
    _scale[(triton.cdiv(n, block),)](x, n, float(alpha), incx, BLOCK=block, num_warps=4)
