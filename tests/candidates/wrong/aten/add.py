import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a_ptr, b_ptr, out_ptr, n, scale_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, a + tl.load(scale_ptr) * b, mask=i < n)


# breaks: The result's dtype is promoted from both dtypes alone, also where one operand has no dimensions.
# outcome: wrong dtype
def promotes_without_categories__Tensor(self, other, *, alpha=1):
    dtype = torch.promote_types(self.dtype, other.dtype)
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    shape = torch.broadcast_shapes(self.shape, other.shape)
    a, b = self.to(wide).expand(shape).contiguous(), other.to(wide).expand(shape).contiguous()
    out = torch.empty(shape, dtype=wide, device=self.device)
    scale = torch.tensor([alpha], dtype=wide, device=self.device)
    if out.numel():
        add_kernel[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), scale, BLOCK=1024)
    return out.to(dtype)


def promotes_without_categories__Scalar(self, other, alpha=1):
    dtype = torch.result_type(self, other)
    return promotes_without_categories__Tensor(
        self.to(dtype), torch.tensor(other, dtype=dtype, device=self.device), alpha=alpha
    )
