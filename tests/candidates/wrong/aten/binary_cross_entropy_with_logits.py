import torch
import triton
import triton.language as tl


@triton.jit
def bce_kernel(x_ptr, t_ptr, w_ptr, p_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    t = tl.load(t_ptr + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    p = tl.load(p_ptr + i, mask=i < n, other=0.0)
    e = tl.exp(-tl.abs(x))
    log_term = tl.where(e < 1e-8, e, tl.log(1.0 + e)) + tl.where(x < 0, -x, 0.0)
    loss = w * ((1.0 - t) * x + (1.0 + (p - 1.0) * t) * log_term)
    tl.store(y_ptr + i, tl.where(x != x, x, loss), mask=i < n)


# breaks: The mean divides by the sum of the weights where there are weights.
def mean_over_weights(self, target, weight=None, pos_weight=None, reduction=1, *, out=None):
    one = torch.ones((), dtype=torch.float64, device=self.device)
    wide = []
    for each in (self, target, weight, pos_weight):
        each = one if each is None else each.double()
        wide.append(each.expand(self.shape).contiguous())
    y = torch.empty(self.shape, dtype=torch.float64, device=self.device)
    n = y.numel()
    if n:
        bce_kernel[(triton.cdiv(n, 1024),)](*wide, y, n, BLOCK=1024)
    if reduction == 1:
        y = y.sum() / wide[2].sum()
    elif reduction == 2:
        y = y.sum()
    y = y.to(self.dtype)
    return y if out is None else out.copy_(y)
