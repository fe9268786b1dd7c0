import torch
import triton
import triton.language as tl


@triton.jit
def logit_kernel(x_ptr, y_ptr, n, eps, CLAMP: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.5).to(WIDE)
    if CLAMP:
        x = tl.where(x > eps, x, eps)
        x = tl.where(x < 1.0 - eps, x, 1.0 - eps)
    y = tl.log(x / (1.0 - x))
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: With eps it clamps by tl.maximum and tl.minimum, which turn NaN into a limit.
def limits_drop_nan(self, eps=None, *, out=None):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(torch.float64 if dtype == torch.float64 else torch.float32).contiguous()
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    clamp = eps is not None and eps >= 0
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    if x.numel():
        grid = (triton.cdiv(x.numel(), 1024),)
        logit_kernel[grid](x, y, x.numel(), float(eps or 0.0), CLAMP=clamp, WIDE=wide, BLOCK=1024)
    y = y.to(dtype)
    return y if out is None else out.copy_(y)
