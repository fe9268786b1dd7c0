"""cublasCdotu_v2: the sum of x_i * y_i, complex64 vectors at given increments.

Each program sums one stretch of the vectors in float32; one more program adds these sums up in float64, always in the
same order. A complex number is loaded as one integer of 64 bits.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _parts(word):
    """Real and imaginary part of a complex64, which lie in the low and the high half."""
    real = word.to(tl.int32).to(tl.float32, bitcast=True)
    imag = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return real, imag


@triton.jit
def _partial(x_ptr, y_ptr, sum_ptr, n, per_program, x_first, x_step, y_step, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    real = tl.zeros((BLOCK,), dtype=tl.float32)
    imag = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, per_program, BLOCK):
        i = program.to(tl.int64) * per_program + start + tl.arange(0, BLOCK)
        a, b = _parts(tl.load(x_ptr + x_first + i * x_step, mask=i < n, other=0))
        c, d = _parts(tl.load(y_ptr + i * y_step, mask=i < n, other=0))
        real += a * c - b * d
        imag += a * d + b * c
    tl.store(sum_ptr + 2 * program, tl.sum(real.to(tl.float64), axis=0))
    tl.store(sum_ptr + 2 * program + 1, tl.sum(imag.to(tl.float64), axis=0))


@triton.jit(do_not_specialize=["count"])
def _total(sum_ptr, result_ptr, count, SUMS: tl.constexpr):
    i = tl.arange(0, SUMS)
    real = tl.load(sum_ptr + 2 * i, mask=i < count, other=0.0)
    imag = tl.load(sum_ptr + 2 * i + 1, mask=i < count, other=0.0)
    tl.store(result_ptr, tl.sum(real, axis=0).to(tl.float32))
    tl.store(result_ptr + 1, tl.sum(imag, axis=0).to(tl.float32))


def cublasCdotu_v2(n, x, incx, y, incy, result):
    """x, y: 1-D storage, element i at i * inc, or (i + 1 - n) * inc where that is negative; result: one complex64."""
    out = torch.view_as_real(result)
    if n <= 0:
        out.fill_(0)
        return
    # y is walked upwards; x then goes downwards where one of the increments is negative.
    x_first, x_step = (0, abs(incx)) if (incx > 0) == (incy > 0) else ((n - 1) * abs(incx), -abs(incx))
    # At most 12 programs for each of 132 multiprocessors, so that _total has at most 2048 sums.
    per_program = triton.cdiv(triton.cdiv(n, 132 * 12), 2048) * 2048
    count = triton.cdiv(n, per_program)
    sums = torch.empty(2 * count, dtype=torch.float64, device=x.device)
    words = (torch.view_as_real(x).view(torch.int64), torch.view_as_real(y).view(torch.int64))
    _partial[(count,)](*words, sums, n, per_program, x_first, x_step, abs(incy), BLOCK=2048, num_warps=8)
    _total[(1,)](sums, out, count, SUMS=2048, num_warps=8)
