import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(x_ptr, v_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    v = tl.load(v_ptr + i, mask=i < n, other=0)
    one = tl.full((BLOCK,), 1, v.dtype)
    y = tl.where(x == 0, v, tl.where(x < 0, one - one, one))
    tl.store(out_ptr + i, y, mask=i < n)


# breaks: What is neither 0 nor below 0 counts as 1, so NaN does, too.
def nan_is_positive(self, values, *, out=None):
    shape = torch.broadcast_shapes(self.shape, values.shape)
    dtype = self.dtype
    if dtype == torch.bool:
        return self.logical_or(values)
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    x, v = self.to(wide).expand(shape).contiguous(), values.to(wide).expand(shape).contiguous()
    y = torch.empty(shape, dtype=wide, device=self.device)
    if y.numel():
        step_kernel[(triton.cdiv(y.numel(), 1024),)](x, v, y, y.numel(), BLOCK=1024)
    return y.to(dtype) if out is None else out.copy_(y)
