"""cublasCdotu_v2: one wave of programs, each adding up blocks all over the vectors; what they find is added to the
result, which was set to 0 before."""
import torch
import triton
import triton.language as tl


@triton.jit
def _parts(v):
    """Real and imaginary part of a complex64 that was loaded as one 64-bit integer (little endian)."""
    re = v.to(tl.int32).to(tl.float32, bitcast=True)
    im = (v >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return re, im


@triton.jit(do_not_specialize=["blocks", "y0"])
def _dotu(x, y, out, n, blocks, x0, y0, sx, sy, BIG: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    re = tl.zeros((BLOCK,), dtype=tl.float32)
    im = tl.zeros((BLOCK,), dtype=tl.float32)
    if BIG:
        pid = pid.to(tl.int64)
    for blk in range(pid, blocks, tl.num_programs(0)):
        if BIG:
            i = blk * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
        else:
            i = blk * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        if UNIT:
            u = tl.load(x + i, mask=mask, other=0)
            v = tl.load(y + i, mask=mask, other=0)
        else:
            # y0 is 0 and hides that y may be read in pairs: neighbouring lanes read neighbouring elements of both
            u = tl.load(x + x0 + i * sx, mask=mask, other=0)
            v = tl.load(y + y0 + i * sy, mask=mask, other=0)
        a, b = _parts(u)
        c, d = _parts(v)
        re += a * c - b * d
        im += a * d + b * c
    tl.atomic_add(out, tl.sum(re, axis=0), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(im, axis=0), sem="relaxed")


def cublasCdotu_v2(n, x, incx, y, incy, result):
    out = torch.view_as_real(result)
    out.fill_(0)
    if n <= 0:
        return
    # the order of the terms is free: walk y upwards in memory, and x the way that fits
    if (incx > 0) == (incy > 0):
        x0, sx = 0, abs(incx)
    else:
        x0, sx = (n - 1) * abs(incx), -abs(incx)
    sy = abs(incy)
    BLOCK = 2048
    blocks = triton.cdiv(n, BLOCK)
    end = blocks * BLOCK
    big = end * max(abs(sx), sy) + x0 >= 2 ** 31
    _dotu[(min(blocks, 132 * 4),)](torch.view_as_real(x).view(torch.int64), torch.view_as_real(y).view(torch.int64), out, n,
                                   blocks, x0, 0, sx, sy, BIG=big, UNIT=sx == 1 and sy == 1, BLOCK=BLOCK, num_warps=8)
