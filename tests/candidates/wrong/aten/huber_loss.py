import torch
import triton
import triton.language as tl


@triton.jit
def huber_kernel(x_ptr, t_ptr, out_ptr, n, delta, REDUCE: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    t = tl.load(t_ptr + i, mask=i < n, other=0.0)
    z = tl.abs(x - t)
    loss = tl.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta))
    loss = tl.where(z != z, z, loss)
    if REDUCE:
        tl.store(out_ptr + pid, tl.sum(loss, axis=0))
    else:
        tl.store(out_ptr + i, loss, mask=i < n)


# breaks: The mean divides by the number of lanes started instead of the number of elements.
def mean_over_padded_count(self, target, reduction=1, delta=1.0, *, out=None):
    dtype = self.dtype
    shape = torch.broadcast_shapes(self.shape, target.shape)
    wide = torch.float64
    x, t = self.to(wide).expand(shape).contiguous(), target.to(wide).expand(shape).contiguous()
    n, block = x.numel(), 256
    blocks = triton.cdiv(n, block)
    if reduction == 0:
        y = torch.empty(shape, dtype=wide, device=x.device)
        if n:
            huber_kernel[(blocks,)](x, t, y, n, delta, REDUCE=False, BLOCK=block)
        return y.to(dtype) if out is None else out.copy_(y)
    if n == 0:
        return torch.full((), float("nan") if reduction == 1 else 0.0, dtype=dtype, device=x.device)
    parts = torch.empty(blocks, dtype=wide, device=x.device)
    huber_kernel[(blocks,)](x, t, parts, n, delta, REDUCE=True, BLOCK=block)
    total = parts.sum()
    if reduction == 1:
        total = total / (blocks * block if n > block else n)
    return total.to(dtype)
