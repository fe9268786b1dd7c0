"""cublasSdot_v2: one wave of programs, each adding up blocks all over the vectors; what they find is added to the
result, which was set to 0 before."""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["blocks"])
def _dot(x, y, result, n, blocks, x0, sx, sy, BIG: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    if BIG:
        pid = pid.to(tl.int64)
    for blk in range(pid, blocks, tl.num_programs(0)):
        if BIG:
            i = blk * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        else:
            i = blk * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        if UNIT:
            a = tl.load(x + i, mask=mask, other=0.0)
            b = tl.load(y + i, mask=mask, other=0.0)
        else:
            a = tl.load(x + x0 + i * sx, mask=mask, other=0.0)
            b = tl.load(y + i * sy, mask=mask, other=0.0)
        acc += a * b
    tl.atomic_add(result, tl.sum(acc.to(tl.float64), axis=0).to(tl.float32), sem="relaxed")


def cublasSdot_v2(n, x, incx, y, incy, result):
    result.fill_(0)
    if n <= 0:
        return
    # the order of the terms is free: walk y upwards in memory, and x the way that fits
    if (incx > 0) == (incy > 0):
        x0, sx = 0, abs(incx)
    else:
        x0, sx = (n - 1) * abs(incx), -abs(incx)
    sy = abs(incy)
    BLOCK = 4096
    blocks = triton.cdiv(n, BLOCK)
    big = blocks * BLOCK * max(abs(sx), sy) + x0 >= 2 ** 31
    _dot[(min(blocks, 132 * 4),)](x, y, result, n, blocks, x0, sx, sy, BIG=big, UNIT=sx == 1 and sy == 1,
                                  BLOCK=BLOCK, num_warps=8)
