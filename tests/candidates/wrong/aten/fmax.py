import torch
import triton
import triton.language as tl


@triton.jit
def fmax_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.where(a > b, a, b), mask=i < n)


# breaks: It selects by self > other, which is false for NaN on either side, so other's NaN wins.
def compare_and_select(self, other, *, out=None):
    dtype = torch.result_type(self, other)
    shape = torch.broadcast_shapes(self.shape, other.shape)
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    a, b = self.to(wide).expand(shape).contiguous(), other.to(wide).expand(shape).contiguous()
    y = torch.empty(shape, dtype=wide, device=self.device)
    n = y.numel()
    if n:
        fmax_kernel[(triton.cdiv(n, 1024),)](a, b, y, n, BLOCK=1024)
    return y.to(dtype) if out is None else out.copy_(y)
