"""cublasSger_v2: A = alpha x y^T + A. A tile's last axis runs down a column, along memory."""
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "alpha", "x0", "y0", "tm"])
def _ger(x, y, A, m, n, alpha, incx, x0, incy, y0, lda, tm, BM: tl.constexpr, BN: tl.constexpr):
    # tm, the tiles of a column, comes from Python: m + BM may pass 32 bits
    pid = tl.program_id(0)
    rows = (pid % tm).to(tl.int64) * BM + tl.arange(0, BM)
    cols = (pid // tm).to(tl.int64) * BN + tl.arange(0, BN)
    xv = tl.load(x + x0 + rows * incx, mask=rows < m, other=0.0) * alpha
    yv = tl.load(y + y0 + cols * incy, mask=cols < n, other=0.0)
    mask = (cols < n)[:, None] & (rows < m)[None, :]
    p = A + cols[:, None] * lda + rows[None, :]
    a = tl.load(p, mask=mask, other=0.0)
    tl.store(p, a + xv[None, :] * yv[:, None], mask=mask)


def cublasSger_v2(m, n, alpha, x, incx, y, incy, A, lda):
    if m <= 0 or n <= 0 or alpha == 0:
        return
    x0 = (m - 1) * -incx if incx < 0 else 0
    y0 = (n - 1) * -incy if incy < 0 else 0
    BM = min(1024, max(16, triton.next_power_of_2(m)))
    BN = min(4096 // BM, max(1, triton.next_power_of_2(n)))
    tm = triton.cdiv(m, BM)
    grid = (tm * triton.cdiv(n, BN),)
    _ger[grid](x, y, A, m, n, float(alpha), incx, x0, incy, y0, lda, tm, BM=BM, BN=BN, num_warps=8)

