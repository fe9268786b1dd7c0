import torch
import triton
import triton.language as tl


@triton.jit
def cos_kernel(in_ptr, out_ptr, numel, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < numel
    x = tl.load(in_ptr + offs, mask=mask, other=0.0)
    y = tl.cos(x.to(WIDE))
    tl.store(out_ptr + offs, y.to(out_ptr.dtype.element_ty), mask=mask)


# breaks: It walks numel() neighbouring words of memory whatever self's strides are.
def flat_walk_over_strides(self):
    dtype = self.dtype if self.dtype.is_floating_point else torch.float32
    out = torch.empty_like(self, dtype=dtype)
    numel = self.numel()
    if numel == 0:
        return out
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    cos_kernel[(triton.cdiv(numel, 1024),)](self, out, numel, WIDE=wide, BLOCK=1024)
    return out
