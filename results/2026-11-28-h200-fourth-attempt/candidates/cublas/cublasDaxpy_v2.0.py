"""cublasDaxpy_v2: y = alpha x + y."""
import struct

import torch
import triton
import triton.language as tl


def _bits(v):
    """The bits of a float64 as an integer: a Python float would reach a kernel as float32."""
    return struct.unpack("<q", struct.pack("<d", float(v)))[0]


@triton.jit
def _f64(bits):
    return bits.to(tl.int64).to(tl.float64, bitcast=True)


@triton.jit(do_not_specialize=["alpha"])
def _axpy(x, y, n, alpha, x0, sx, sy, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = _f64(alpha)
    xv = tl.load(x + x0 + i * sx, mask=mask, other=0.0)
    py = y + i * sy
    yv = tl.load(py, mask=mask, other=0.0)
    tl.store(py, a * xv + yv, mask=mask)


@triton.jit(do_not_specialize=["alpha", "x0", "y0"])
def _axpy_strided(x, y, n, alpha, x0, y0, sx, sy, BIG: tl.constexpr, BLOCK: tl.constexpr):
    # y0 is 0 and hides that y could be read in pairs: neighbouring lanes take neighbouring elements of both vectors, and
    # no sector of x is asked for twice
    pid = tl.program_id(0)
    if BIG:
        pid = pid.to(tl.int64)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = _f64(alpha)
    xv = tl.load(x + x0 + i * sx, mask=mask, other=0.0)
    py = y + y0 + i * sy
    yv = tl.load(py, mask=mask, other=0.0)
    tl.store(py, a * xv + yv, mask=mask)


def cublasDaxpy_v2(n, alpha, x, incx, y, incy):
    if n <= 0 or alpha == 0:
        return
    # walk y upwards in memory; with increments of unlike signs x is walked downwards
    if (incx > 0) == (incy > 0):
        x0, sx = 0, abs(incx)
    else:
        x0, sx = (n - 1) * abs(incx), -abs(incx)
    sy = abs(incy)
    if sx == 1 and sy == 1:
        BLOCK = 2048
        _axpy[(triton.cdiv(n, BLOCK),)](x, y, n, _bits(alpha), x0, sx, sy, BLOCK=BLOCK, num_warps=8)
    else:
        BLOCK = 1024
        big = (n + BLOCK) * max(abs(sx), sy) + x0 >= 2 ** 31
        _axpy_strided[(triton.cdiv(n, BLOCK),)](x, y, n, _bits(alpha), x0, 0, sx, sy, BIG=big, BLOCK=BLOCK, num_warps=4)
