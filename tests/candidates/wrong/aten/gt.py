import torch
import triton
import triton.language as tl


@triton.jit
def gt_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, (a > b).to(tl.int8), mask=i < n)


# breaks: other is converted to self's dtype before they are compared: 1.5 becomes 1 beside integers.
def in_the_dtype_of_self(self, other):
    if not isinstance(other, torch.Tensor):
        other = torch.tensor(other)
    b = other.to(self.device, self.dtype)
    wide = torch.float64 if self.is_floating_point() else torch.int64
    shape = torch.broadcast_shapes(self.shape, b.shape)
    x, y = self.to(wide).expand(shape).contiguous(), b.to(wide).expand(shape).contiguous()
    out = torch.empty(shape, dtype=torch.bool, device=self.device)
    if out.numel():
        gt_kernel[(triton.cdiv(out.numel(), 1024),)](x, y, out.view(torch.int8), out.numel(), BLOCK=1024)
    return out
