import torch
import triton
import triton.language as tl


@triton.jit
def complex_rank_one(x_ptr, y_ptr, a_ptr, m, ar, ai, incx, incy, lda, B: tl.constexpr):
    column = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    yr = tl.load(y_ptr + 2 * column * incy)
    yi = -tl.load(y_ptr + 2 * column * incy + 1)
    xr = tl.load(x_ptr + 2 * i * incx, mask=i < m, other=0.0)
    xi = tl.load(x_ptr + 2 * i * incx + 1, mask=i < m, other=0.0)
    tr, ti = ar * yr - ai * yi, ar * yi + ai * yr
    at = a_ptr + 2 * (i + column * lda)
    old_r = tl.load(at, mask=i < m, other=0.0)
    old_i = tl.load(at + 1, mask=i < m, other=0.0)
    tl.store(at, old_r + tr * xr - ti * xi, mask=i < m)
    tl.store(at + 1, old_i + tr * xi + ti * xr, mask=i < m)


# breaks: It computes geru's sister gerc: y is conjugated.
def conjugates_y(m, n, alpha, x, incx, y, incy, A, lda):
    if m == 0 or n == 0 or alpha == 0:
        return
    x, y = x[max(0, (1 - m) * incx) :], y[max(0, (1 - n) * incy) :]
    parts = [torch.view_as_real(each) for each in (x, y, A)]
    complex_rank_one[(triton.cdiv(m, 128), n)](*parts, m, alpha.real, alpha.imag, incx, incy, lda, B=128)
