import torch
import triton
import triton.language as tl


@triton.jit
def softplus_grad(g_ptr, x_ptr, out_ptr, n, beta, threshold, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + i, mask=i < n, other=0.0).to(WIDE)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(WIDE) * beta
    z = tl.exp(-x)
    # z / (1 + z) = 1 - 1 / (1 + 1 / z), without a second exponential
    tl.store(out_ptr + i, tl.where(x > threshold, g, g * (1.0 - z / (1.0 + z))), mask=i < n)


# breaks: It takes the sigmoid as 1 - z / (1 + z), which cancels for negative elements and is NaN where z overflows.
def one_minus_quotient(grad_output, self, beta, threshold, *, grad_input=None):
    dtype = torch.float64 if self.dtype == torch.float64 else torch.float32
    x, g = self.to(dtype).contiguous(), grad_output.to(dtype).contiguous()
    y = torch.empty(self.shape, dtype=dtype, device=self.device)
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    n = y.numel()
    if n:
        grid = (triton.cdiv(n, 2048),)
        softplus_grad[grid](g, x, y, n, float(beta), float(threshold), WIDE=wide, BLOCK=2048)
    return y.to(self.dtype) if grad_input is None else grad_input.copy_(y)
