import torch
import triton
import triton.language as tl


@triton.jit
def _rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n, other=0.0)
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(y_ptr + row * n + column, e / tl.sum(e, axis=0), mask=column < n)


# breaks: Lanes behind the end of a row are loaded as 0 and take part in maximum and sum.
def padding_in_the_sum(self, dim, half_to_float):
    if self.ndim == 0:
        return padding_in_the_sum(self.reshape(1), 0, half_to_float).reshape(())
    wide = torch.float64 if self.dtype == torch.float64 else torch.float32
    x = self.to(wide).movedim(dim, -1).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        n = x.shape[-1]
        _rows[(x.numel() // n,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y.movedim(-1, dim).to(torch.float32 if half_to_float else self.dtype).contiguous()


@triton.jit
def _online(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    m = float("-inf")
    total = 0.0
    for first in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + first + lane, mask=first + lane < n, other=float("-inf"))
        m = tl.maximum(m, tl.max(x, axis=0))
        total += tl.sum(tl.exp(x - m), axis=0)
    for first in range(0, n, BLOCK):
        inside = first + lane < n
        x = tl.load(x_ptr + row * n + first + lane, mask=inside, other=float("-inf"))
        tl.store(y_ptr + row * n + first + lane, tl.exp(x - m) / total, mask=inside)


# breaks: Online softmax that takes the new maximum without rescaling the sum so far.
def sum_not_rescaled(self, dim, half_to_float):
    shape = self.shape
    x = self.reshape(1) if self.ndim == 0 else self
    x = x.to(torch.float64 if self.dtype == torch.float64 else torch.float32).movedim(dim, -1).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        _online[(x.numel() // x.shape[-1],)](x, y, x.shape[-1], BLOCK=64)
    y = y.movedim(-1, dim).to(torch.float32 if half_to_float else self.dtype)
    return y.reshape(shape).contiguous()
