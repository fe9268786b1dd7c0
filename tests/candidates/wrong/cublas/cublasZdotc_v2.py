import torch
import triton
import triton.language as tl


@triton.jit
def zdotc(x_ptr, y_ptr, result_ptr, n, incx, incy, BLOCK: tl.constexpr):
    re = tl.zeros((BLOCK,), tl.float32)
    im = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        a = tl.load(x_ptr + 2 * i * incx, mask=i < n, other=0.0)
        b = tl.load(x_ptr + 2 * i * incx + 1, mask=i < n, other=0.0)
        c = tl.load(y_ptr + 2 * i * incy, mask=i < n, other=0.0)
        d = tl.load(y_ptr + 2 * i * incy + 1, mask=i < n, other=0.0)
        re += (a * c + b * d).to(tl.float32)
        im += (a * d - b * c).to(tl.float32)
    tl.store(result_ptr, tl.sum(re, axis=0).to(tl.float64))
    tl.store(result_ptr + 1, tl.sum(im, axis=0).to(tl.float64))


# breaks: The accumulators are float32, as copied from the routine for C.
def sums_in_single_precision(n, x, incx, y, incy, result):
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    parts = [torch.view_as_real(each) for each in (x, y, result)]
    zdotc[(1,)](*parts, n, incx, incy, BLOCK=512)
