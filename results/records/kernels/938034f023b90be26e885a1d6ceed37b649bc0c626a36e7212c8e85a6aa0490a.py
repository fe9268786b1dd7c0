"""cublasCgeru_v2: A = alpha x y^T + A, worked on as a real matrix of twice as many rows.

Row r = 2 i + p of the real matrix holds the real (p = 0) or imaginary (p = 1) parts of row i. With t = alpha x_i,
t y_j is (Re t, Im t) Re y_j + (-Im t, Re t) Im y_j: two real rank-1 updates, whose column vectors are alike in layout
to a column of A. A tile's last axis runs down a column, along memory.
"""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "alr", "ali", "x0", "y0"])
def _ger(x, y, A, m2, n, alr, ali, incx, x0, incy, y0, lda2, BM: tl.constexpr, BN: tl.constexpr):
    ar = alr
    ai = ali
    tm = (m2 - 1) // BM + 1
    pid = tl.program_id(0)
    rows = (pid % tm).to(tl.int64) * BM + tl.arange(0, BM)
    cols = (pid // tm).to(tl.int64) * BN + tl.arange(0, BN)
    rmask = rows < m2
    cmask = cols < n
    i = rows // 2
    odd = (rows % 2) == 1
    px = x + (x0 + i * incx) * 2
    xr = tl.load(px, mask=rmask, other=0.0)
    xi = tl.load(px + 1, mask=rmask, other=0.0)
    tr = xr * ar - xi * ai
    ti = xr * ai + xi * ar
    py = y + (y0 + cols * incy) * 2
    yr = tl.load(py, mask=cmask, other=0.0)
    yi = tl.load(py + 1, mask=cmask, other=0.0)
    u = tl.where(odd, ti, tr)
    v = tl.where(odd, tr, -ti)
    mask = cmask[:, None] & rmask[None, :]
    p = A + cols[:, None] * lda2 + rows[None, :]
    a = tl.load(p, mask=mask, other=0.0)
    tl.store(p, a + (u[None, :] * yr[:, None] + v[None, :] * yi[:, None]), mask=mask)


def cublasCgeru_v2(m, n, alpha, x, incx, y, incy, A, lda):
    alpha = complex(alpha)
    if m <= 0 or n <= 0 or alpha == 0:
        return
    x0 = (m - 1) * -incx if incx < 0 else 0
    y0 = (n - 1) * -incy if incy < 0 else 0
    BM = min(1024, max(16, triton.next_power_of_2(2 * m)))
    BN = min(4096 // BM, max(1, triton.next_power_of_2(n)))
    grid = (triton.cdiv(2 * m, BM) * triton.cdiv(n, BN),)
    _ger[grid](torch.view_as_real(x), torch.view_as_real(y), torch.view_as_real(A), 2 * m, n, alpha.real, alpha.imag,
               incx, x0, incy, y0, 2 * lda, BM=BM, BN=BN, num_warps=8)
