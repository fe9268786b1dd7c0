import torch
import triton
import triton.language as tl


@triton.jit
def fill_where(x_ptr, mask_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(mask_ptr + i, mask=i < n, other=0)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(x_ptr + i, tl.where(m != 0, value, x).to(x_ptr.dtype.element_ty), mask=i < n)


# breaks: It fills a clone and returns that.
# outcome: rejected
# right: nothing
def fills_a_clone(self, mask, value):
    x = self.clone().contiguous()
    m = mask.expand(self.shape).contiguous().view(torch.uint8)
    value = value.item() if hasattr(value, "item") else value
    if x.numel():
        fill_where[(triton.cdiv(x.numel(), 1024),)](x, m, x.numel(), value, BLOCK=1024)
    return x
