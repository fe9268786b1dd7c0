import torch
import triton
import triton.language as tl


@triton.jit
def min_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, LIMIT: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=LIMIT)
    holes = tl.sum((x != x).to(tl.int32), axis=0)
    lowest = tl.min(tl.where(x != x, LIMIT, x), axis=0)
    tl.store(out_ptr + row, tl.where(holes > 0, float("nan"), lowest))


# breaks: The reduced dimensions always go.
# outcome: wrong shape
def keepdim_ignored(self, dim=(), keepdim=False, *, out=None):
    x = self.double()
    dims = {d % max(x.ndim, 1) for d in dim} or set(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    gone = [d for d in range(x.ndim) if d in dims]
    flat = x.permute(kept + gone).contiguous()
    y = torch.empty([x.shape[d] for d in kept], dtype=torch.float64, device=x.device)
    if x.numel():
        n = x.numel() // y.numel()
        min_kernel[(y.numel(),)](flat, y, n, BLOCK=triton.next_power_of_2(n), LIMIT=float("inf"))
    return y.to(self.dtype) if out is None else out.copy_(y.reshape(out.shape))


@triton.jit
def min_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0)
    tl.store(out_ptr + row, tl.min(x, axis=0))


# breaks: Lanes behind the end are loaded as 0, which is smaller than any positive row.
def padding_of_zero(self, dim=(), keepdim=False, *, out=None):
    dtype = self.dtype
    x = self.double() if dtype.is_floating_point else self.long()
    dims = {d % max(x.ndim, 1) for d in dim} or set(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    gone = [d for d in range(x.ndim) if d in dims]
    flat = x.permute(kept + gone).contiguous()
    y = torch.empty([x.shape[d] for d in kept], dtype=x.dtype, device=x.device)
    if x.numel():
        n = x.numel() // y.numel()
        min_rows[(y.numel(),)](flat, y, n, BLOCK=triton.next_power_of_2(n))
    if keepdim:
        y = y.reshape([1 if d in dims else x.shape[d] for d in range(x.ndim)])
    return y.to(dtype) if out is None else out.copy_(y)


@triton.jit
def running_min(x_ptr, out_ptr, rows, n, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, WIDTH)[None, :]
    inside = row < rows
    at = x_ptr + (row * n)[:, None]
    first = tl.load(x_ptr + row * n, mask=inside, other=0)[:, None]
    best = tl.load(at + i, mask=inside[:, None] & (i < n), other=first)
    for j in range(WIDTH, n, WIDTH):
        x = tl.load(at + j + i, mask=inside[:, None] & (j + i < n), other=first)
        best = tl.where(x < best, x, best)
    tl.store(out_ptr + row, tl.min(best, axis=1), mask=inside)


# breaks: The running minimum takes what is smaller, which a NaN never is.
def running_minimum_skips_nan(self, dim=(), keepdim=False, *, out=None):
    dtype = self.dtype
    x = self.double() if dtype.is_floating_point else self.long()
    dims = {d % max(x.ndim, 1) for d in dim} or set(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    gone = [d for d in range(x.ndim) if d in dims]
    flat = x.permute(kept + gone).contiguous()
    y = torch.empty([x.shape[d] for d in kept], dtype=x.dtype, device=x.device)
    rows = y.numel()
    if x.numel():
        running_min[(triton.cdiv(rows, 128),)](flat, y, rows, x.numel() // rows, BLOCK=128, WIDTH=64)
    if keepdim:
        y = y.reshape([1 if d in dims else x.shape[d] for d in range(x.ndim)])
    return y.to(dtype) if out is None else out.copy_(y)
