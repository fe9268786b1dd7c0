import torch
import triton
import triton.language as tl


@triton.jit
def smooth_l1_grad(g_ptr, x_ptr, t_ptr, out_ptr, n, g_step, norm, beta, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + i * g_step, mask=i < n, other=0.0)
    d = tl.load(x_ptr + i, mask=i < n, other=0.0) - tl.load(t_ptr + i, mask=i < n, other=0.0)
    size = tl.abs(d)
    slope = tl.where(size < beta, d / beta, tl.where(d > 0, 1.0, -1.0))
    slope = tl.where(size != size, size, slope)
    tl.store(out_ptr + i, norm * g * slope, mask=i < n)


# breaks: The mean is over len(self), the first dimension, instead of all elements.
def mean_over_first_dimension(grad_output, self, target, reduction, beta, *, grad_input=None):
    x, t = self.double().contiguous(), target.double().contiguous()
    g = grad_output.double().contiguous()
    y = torch.empty(self.shape, dtype=torch.float64, device=self.device)
    n = y.numel()
    norm = 1.0 / len(x) if reduction == 1 and n and x.ndim else 1.0
    if n:
        step = 1 if reduction == 0 else 0
        smooth_l1_grad[(triton.cdiv(n, 4096),)](g, x, t, y, n, step, norm, float(beta), BLOCK=4096)
    return y.to(self.dtype) if grad_input is None else grad_input.copy_(y)
