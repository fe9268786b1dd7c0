import torch
import triton
import triton.language as tl


@triton.jit
def le_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=0)
    greater = (a > b).to(tl.int8)
    tl.store(out_ptr + i, 1 - greater, mask=i < n)


# breaks: It answers not (self > other), which is true for NaN.
def not_greater(self, other):
    dtype = torch.result_type(self, other)
    if not isinstance(other, torch.Tensor):
        other = torch.tensor(other, dtype=torch.float64 if isinstance(other, float) else torch.int64)
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    shape = torch.broadcast_shapes(self.shape, other.shape)
    a = self.to(wide).expand(shape).contiguous()
    b = other.to(self.device, wide).expand(shape).contiguous()
    out = torch.empty(shape, dtype=torch.bool, device=self.device)
    if out.numel():
        le_kernel[(triton.cdiv(out.numel(), 1024),)](a, b, out.view(torch.int8), out.numel(), BLOCK=1024)
    return out
