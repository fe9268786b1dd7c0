import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0) / BLOCK)


# breaks: It divides by the block's width, a power of two, not by the number of elements.
def counts_whole_block__dim(self, dim, keepdim=False, *, dtype=None):
    dtype = dtype or self.dtype
    if dtype.is_complex:
        parts = counts_whole_block__dim(torch.view_as_real(self), [d % self.ndim for d in dim], keepdim)
        return torch.view_as_complex(parts)
    x = self.to(dtype).double()
    dims = {d % max(x.ndim, 1) for d in dim} if dim else set(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    gone = [d for d in range(x.ndim) if d in dims]
    flat = x.permute(kept + gone).contiguous()
    out = torch.full([x.shape[d] for d in kept], float("nan"), dtype=torch.float64, device=x.device)
    if x.numel():
        n = x.numel() // out.numel()
        mean_kernel[(out.numel(),)](flat, out, n, BLOCK=triton.next_power_of_2(n))
    if keepdim:
        out = out.reshape([1 if d in dims else x.shape[d] for d in range(x.ndim)])
    return out.to(dtype)


def counts_whole_block(self, *, dtype=None):
    return counts_whole_block__dim(self, [], dtype=dtype)


@triton.jit
def mean_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    for first in range(0, n, BLOCK):
        total += tl.load(x_ptr + row * n + first + i, mask=first + i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(total, axis=0).to(tl.float32) / n)


# breaks: 16-bit numbers are added in 16 bits, where a sum overflows or stands still.
def sum_in_half(self, dim=None, keepdim=False, *, dtype=None):
    dtype = dtype or self.dtype
    x = self.to(dtype)
    if dtype.is_complex:
        return torch.complex(sum_in_half(x.real, dim, keepdim), sum_in_half(x.imag, dim, keepdim))
    if dtype == torch.float64:
        return x.mean(dim or list(range(x.ndim)), keepdim)
    if dtype == torch.bfloat16:
        x = x.float()
    dims = [d % max(x.ndim, 1) for d in dim] if dim else list(range(x.ndim))
    dims = dims if x.ndim else []
    kept = [d for d in range(x.ndim) if d not in dims]
    flat = x.permute(kept + dims).contiguous()
    out = torch.full([x.shape[d] for d in kept], float("nan"), dtype=torch.float32, device=x.device)
    if x.numel():
        mean_rows[(out.numel(),)](flat, out, x.numel() // out.numel(), BLOCK=32)
    if keepdim:
        out = out.reshape([1 if d in dims else x.shape[d] for d in range(x.ndim)])
    return out.to(dtype)
