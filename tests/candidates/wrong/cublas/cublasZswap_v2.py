import torch
import triton
import triton.language as tl


@triton.jit
def swap_words(x_ptr, y_ptr, words, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < words)
    y = tl.load(y_ptr + i, mask=i < words)
    tl.store(x_ptr + i, y, mask=i < words)
    tl.store(y_ptr + i, x, mask=i < words)


@triton.jit
def swap_strided(x_ptr, y_ptr, n, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for part in tl.static_range(2):
        x = tl.load(x_ptr + 2 * i * incx + part, mask=i < n)
        y = tl.load(y_ptr + 2 * i * incy + part, mask=i < n)
        tl.store(x_ptr + 2 * i * incx + part, y, mask=i < n)
        tl.store(y_ptr + 2 * i * incy + part, x, mask=i < n)


# breaks: With both increments 1 it swaps n words of 8 bytes, where n complex numbers have 2 n.
def half_of_the_words(n, x, incx, y, incy):
    if n == 0:
        return
    xr, yr = torch.view_as_real(x[max(0, (1 - n) * incx) :]), torch.view_as_real(y[max(0, (1 - n) * incy) :])
    if incx == 1 and incy == 1 and n > 1:
        swap_words[(triton.cdiv(n, 1024),)](xr, yr, n, BLOCK=1024)
    else:
        swap_strided[(triton.cdiv(n, 512),)](xr, yr, n, incx, incy, BLOCK=512)
