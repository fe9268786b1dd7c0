import torch
import triton
import triton.language as tl


@triton.jit
def sign_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.int32)
    s = tl.where(x > 0, 1, tl.where(x < 0, -1, 0))
    tl.store(y_ptr + i, s.to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It casts to int32 before it looks at the sign, so that fractions count as 0.
def through_int32(self, *, out=None):
    x = self.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        sign_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y if out is None else out.copy_(y)
