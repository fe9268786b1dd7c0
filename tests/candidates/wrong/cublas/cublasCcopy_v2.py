import torch
import triton
import triton.language as tl


@triton.jit
def ccopy(x_ptr, y_ptr, n, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for part in tl.static_range(2):
        v = tl.load(x_ptr + 2 * i * incx + part, mask=i < n, other=0.0)
        tl.store(y_ptr + 2 * i * incy + part, v.to(tl.float16).to(tl.float32), mask=i < n)


# breaks: To save traffic the words pass through float16.
def through_float16(n, x, incx, y, incy):
    if n == 0:
        return
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    ccopy[(triton.cdiv(n, 512),)](torch.view_as_real(x), torch.view_as_real(y), n, incx, incy, BLOCK=512)
