import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lane, mask=lane < n, other=0)
    tl.store(y_ptr + lane, x * x, mask=lane < n)


# breaks: It starts a single program of 1024 lanes, so what stands behind them is never written.
def one_block_only(self, *, out=None):
    x = self.to(torch.int64) if self.dtype == torch.bool else self
    dtype = x.dtype
    x = (x.float() if dtype in (torch.float16, torch.bfloat16) else x).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        square_kernel[(1,)](x, y, x.numel(), BLOCK=1024)
    y = y.to(dtype)
    return y if out is None else out.copy_(y)
