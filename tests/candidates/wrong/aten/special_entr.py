import torch
import triton
import triton.language as tl


@triton.jit
def entr_kernel(x_ptr, y_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0).to(WIDE)
    y = tl.where(x > 0, -x * tl.log(tl.where(x > 0, x, 1.0)), tl.where(x == 0, 0.0, float("-inf")))
    y = tl.where(x != x, x, y)
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It returns a new tensor where out was to be written.
# outcome: rejected
def out_ignored(self, *, out=None):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(torch.float64 if dtype == torch.float64 else torch.float32).contiguous()
    y = torch.empty(self.shape, dtype=x.dtype, device=self.device)
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    if x.numel():
        entr_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), WIDE=wide, BLOCK=1024)
    return y.to(dtype)
