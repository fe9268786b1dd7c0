import torch
import triton
import triton.language as tl


@triton.jit
def daxpy(x_ptr, y_ptr, alpha_ptr, n, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    alpha = tl.load(alpha_ptr)
    x = tl.load(x_ptr + i * incx, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i * incy, mask=i < n, other=0.0)
    tl.store(y_ptr + i * incy, x * alpha + y, mask=i < n)


# breaks: alpha is handed to the kernel as float32, as Triton passes Python's floats.
def alpha_in_single_precision(n, alpha, x, incx, y, incy):
    if n == 0 or alpha == 0:
        return
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    scalar = torch.tensor([alpha], dtype=torch.float32, device=x.device)
    daxpy[(triton.cdiv(n, 1024),)](x, y, scalar, n, incx, incy, BLOCK=1024)
