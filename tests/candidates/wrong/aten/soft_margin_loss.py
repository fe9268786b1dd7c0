import torch
import triton
import triton.language as tl


@triton.jit
def soft_margin_kernel(x_ptr, t_ptr, y_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    t = tl.load(t_ptr + i, mask=i < n, other=0.0).to(tl.float64)
    e = tl.exp(-t * x)
    loss = tl.where(e < 1e-8, e, tl.log(1.0 + e))
    tl.store(y_ptr + i, loss, mask=i < n)
    tl.store(sum_ptr, tl.sum(tl.where(i < n, loss, 0.0), axis=0))


# breaks: Every program stores its partial sum to the same word instead of adding it.
def last_block_wins(self, target, reduction=1, *, out=None):
    x = self.double().contiguous()
    t = target.double().expand(self.shape).contiguous()
    losses = torch.empty_like(x)
    total = torch.zeros((), dtype=torch.float64, device=x.device)
    n = x.numel()
    if n:
        soft_margin_kernel[(triton.cdiv(n, 512),)](x, t, losses, total, n, BLOCK=512)
    if reduction == 1:
        total = total / n if n else total + float("nan")
    result = (total if reduction else losses).to(self.dtype)
    return result if out is None else out.copy_(result)
