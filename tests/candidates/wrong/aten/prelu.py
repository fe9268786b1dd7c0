import torch
import triton
import triton.language as tl


@triton.jit
def prelu_kernel(x_ptr, w_ptr, y_ptr, n, channels, inner, w_step, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(WIDE)
    c = (i // inner) % channels
    w = tl.load(w_ptr + c * w_step, mask=i < n, other=0.0).to(WIDE)
    positive = tl.where(x > 0, x, 0.0)
    negative = tl.where(x < 0, x, 0.0)
    tl.store(y_ptr + i, (positive + w * negative).to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It is written with a maximum and a minimum against 0, both of which lose NaN.
def by_maximum_and_minimum(self, weight):
    x = self.contiguous()
    w = weight.contiguous().reshape(-1)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    many = w.numel() > 1
    channels = x.shape[1] if many else 1
    inner = x.shape[2:].numel() if many else 1
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    grid = (triton.cdiv(x.numel(), 1024),)
    prelu_kernel[grid](x, w, y, x.numel(), channels, inner, 1 if many else 0, WIDE=wide, BLOCK=1024)
    return y
