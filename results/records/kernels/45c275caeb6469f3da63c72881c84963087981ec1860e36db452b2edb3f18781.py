"""cublasZgerc_v2: A = alpha x y^H + A, worked on as a real matrix of twice as many rows.

Row r = 2 i + p of the real matrix holds the real (p = 0) or imaginary (p = 1) parts of row i. With t = alpha x_i,
t y_j is (Re t, Im t) Re y_j + (-Im t, Re t) Im y_j: two real rank-1 updates, whose column vectors are alike in layout
to a column of A. A tile's last axis runs down a column, along memory. A tile holds every P-th column, where P columns are
a multiple of 128 bytes, and begins as many rows earlier as its columns' addresses exceed such a multiple: so all that a
warp touches are whole cache lines.
"""
import math
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


@triton.jit(do_not_specialize=["m", "n", "alr", "ali", "incx", "x0", "incy", "y0", "lda", "a0", "tm", "tn"])
def _ger(x, y, A, m, n, alr, ali, incx, x0, incy, y0, lda, a0, tm, tn, P: tl.constexpr, ALIGN: tl.constexpr, ACROSS: tl.constexpr,
         BM: tl.constexpr, BN: tl.constexpr):
    ar = _f64(alr)
    ai = _f64(ali)
    pid = tl.program_id(0)
    if ACROSS:
        im = pid // tn
        jb = pid % tn
    else:
        im = pid % tm
        jb = pid // tm
    la = lda.to(tl.int64)
    m2 = m.to(tl.int64) * 2
    first = jb % P
    rows = im.to(tl.int64) * BM + tl.arange(0, BM)
    if ALIGN:
        rows -= (a0 + first * la) % 8 * 2
    cols = (jb // P).to(tl.int64) * (BN * P) + first + tl.arange(0, BN) * P
    rmask = (rows >= 0) & (rows < m2)
    cmask = cols < n
    i = rows >> 1
    odd = (rows & 1) == 1
    px = x + (x0 + i * incx) * 2
    xr = tl.load(px, mask=rmask, other=0.0)
    xi = tl.load(px + 1, mask=rmask, other=0.0)
    tr = xr * ar - xi * ai
    ti = xr * ai + xi * ar
    py = y + (y0 + cols * incy) * 2
    yr = tl.load(py, mask=cmask, other=0.0)
    yi = -tl.load(py + 1, mask=cmask, other=0.0)
    u = tl.where(odd, ti, tr)
    v = tl.where(odd, tr, -ti)
    mask = cmask[:, None] & rmask[None, :]
    p = A + (cols * la * 2)[:, None] + rows[None, :]
    a = tl.load(p, mask=mask, other=0.0)
    tl.store(p, a + (u[None, :] * yr[:, None] + v[None, :] * yi[:, None]), mask=mask)


def cublasZgerc_v2(m, n, alpha, x, incx, y, incy, A, lda):
    alpha = complex(alpha)
    if m <= 0 or n <= 0 or alpha == 0:
        return
    x0 = (m - 1) * -incx if incx < 0 else 0
    y0 = (n - 1) * -incy if incy < 0 else 0
    BM = min(512, max(16, triton.next_power_of_2(2 * m)))
    BN = min(2048 // BM, max(1, triton.next_power_of_2(n)))
    a0 = A.data_ptr() // 16 % 8
    P = 8 // math.gcd(lda, 8)
    # with short or few columns the shift does not pay
    align = n >= BN * P and m >= 256
    if not align:
        P = 1
    tm = triton.cdiv(2 * m + (0 if not align else 2 * a0 if P == 1 else 14), BM)
    tn = triton.cdiv(n, BN * P) * P
    _ger[(tm * tn,)](torch.view_as_real(x), torch.view_as_real(y), torch.view_as_real(A), m, n, _bits(alpha.real), _bits(alpha.imag),
                     incx, x0, incy, y0, lda, a0, tm, tn, P=P, ACROSS=tn <= 16 and tm > 64, ALIGN=align, BM=BM, BN=BN, num_warps=8)

