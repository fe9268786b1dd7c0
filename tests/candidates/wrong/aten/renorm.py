import torch
import triton
import triton.language as tl


@triton.jit
def scale_slices(x_ptr, norm_ptr, y_ptr, n, maxnorm, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    factor = maxnorm / (tl.load(norm_ptr + row) + 1e-7)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        tl.store(y_ptr + row * n + i, x * factor, mask=i < n)


@triton.jit
def norms(x_ptr, norm_ptr, n, p, ENDLESS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.abs(tl.load(x_ptr + row * n + i, mask=i < n, other=0.0))
        if ENDLESS:
            total = tl.maximum(total, x)
        else:
            total += tl.where(x > 0, tl.exp(p * tl.log(tl.where(x > 0, x, 1.0))), x)
    if ENDLESS:
        tl.store(norm_ptr + row, tl.max(total, axis=0))
    else:
        s = tl.sum(total, axis=0)
        tl.store(norm_ptr + row, tl.where(s > 0, tl.exp(tl.log(tl.where(s > 0, s, 1.0)) / p), s))


# breaks: Every slice is scaled to maxnorm, also one whose norm is below it.
def scales_small_slices_up(self, p, dim, maxnorm, *, out=None):
    x = self.double().movedim(dim, 0).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        rows, n = x.shape[0], x.numel() // x.shape[0]
        norm = torch.empty(rows, dtype=torch.float64, device=x.device)
        norms[(rows,)](x, norm, n, float(p), ENDLESS=p == float("inf"), BLOCK=256)
        scale_slices[(rows,)](x, norm, y, n, float(maxnorm), BLOCK=256)
    y = y.movedim(0, dim)
    return y.to(self.dtype) if out is None else out.copy_(y)
