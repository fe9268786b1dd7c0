import torch
import triton
import triton.language as tl


@triton.jit
def cdotu(x_ptr, y_ptr, result_ptr, n, incx, incy, BLOCK: tl.constexpr):
    re = tl.zeros((BLOCK,), tl.float32)
    im = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        a = tl.load(x_ptr + 2 * i * incx, mask=i < n, other=0.0)
        b = tl.load(x_ptr + 2 * i * incx + 1, mask=i < n, other=0.0)
        c = tl.load(y_ptr + 2 * i * incy, mask=i < n, other=0.0)
        d = tl.load(y_ptr + 2 * i * incy + 1, mask=i < n, other=0.0)
        re += a * c + b * d
        im += a * d + b * c
    tl.store(result_ptr, tl.sum(re, axis=0))
    tl.store(result_ptr + 1, tl.sum(im, axis=0))


# breaks: The product of the imaginary parts is added, as if one vector were conjugated in one place.
def sign_of_the_imaginary_product(n, x, incx, y, incy, result):
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    parts = [torch.view_as_real(each) for each in (x, y, result)]
    cdotu[(1,)](*parts, n, incx, incy, BLOCK=1024)
