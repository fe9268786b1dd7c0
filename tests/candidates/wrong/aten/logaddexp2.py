import torch
import triton
import triton.language as tl


@triton.jit
def logaddexp2_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(tl.float64)
    b = tl.load(b_ptr + i, mask=i < n, other=0).to(tl.float64)
    m = tl.where(a > b, a, b)
    m = tl.where(a != a, a, m)
    d = tl.abs(a - b)
    small = tl.exp2(-d)
    # log(1 + x) loses small x
    correction = tl.where(small < 1e-8, small, tl.log(1.0 + small)) * 1.4426950408889634
    tl.store(out_ptr + i, m + correction, mask=i < n)


# breaks: The difference of two equal infinities makes NaN.
def equal_infinities(self, other, *, out=None):
    dtype = torch.result_type(self, other)
    shape = torch.broadcast_shapes(self.shape, other.shape)
    a, b = self.double().expand(shape).contiguous(), other.double().expand(shape).contiguous()
    y = torch.empty(shape, dtype=torch.float64, device=self.device)
    if y.numel():
        logaddexp2_kernel[(triton.cdiv(y.numel(), 1024),)](a, b, y, y.numel(), BLOCK=1024)
    return y.to(dtype) if out is None else out.copy_(y)
