import torch
import triton
import triton.language as tl


@triton.jit
def mish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    e = tl.exp(x)
    sp = tl.where(x > 40.0, x, tl.log(1.0 + e))
    sp = tl.where(x < -15.0, e, sp)
    up, down = tl.exp(sp), tl.exp(-sp)
    tanh = tl.where(sp < 1e-4, sp, (up - down) / (up + down))
    tl.store(y_ptr + i, (x * tanh).to(tl.float32).to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It writes tanh as a quotient of exponentials, which is NaN where they overflow.
def tanh_overflows(self, *, out=None):
    x = self.contiguous()
    y = torch.empty_like(x)
    if x.numel() > 0:
        mish_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y if out is None else out.copy_(y)
