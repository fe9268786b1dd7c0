import torch
import triton
import triton.language as tl


@triton.jit
def turn(x_ptr, y_ptr, total, m, n, K: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    plane, rest = at // (m * n), at % (m * n)
    if K == 1:
        i, j = rest // m, rest % m
        source = j * n + n - 1 - i
    elif K == 2:
        source = m * n - 1 - rest
    elif K == 3:
        i, j = rest // m, rest % m
        source = (m - 1 - j) * n + i
    else:
        source = rest
    tl.store(y_ptr + at, tl.load(x_ptr + plane * m * n + source, mask=inside, other=0), mask=inside)


# breaks: A negative k turns by as many quarters forwards.
def negative_turns_forwards(self, k=1, dims=(0, 1), *, out=None):
    k = abs(k) % 4
    a, b = (d % self.ndim for d in dims)
    x = self.movedim((a, b), (-2, -1)).contiguous()
    m, n = x.shape[-2:]
    y = torch.empty([*x.shape[:-2], n, m] if k % 2 else list(x.shape), dtype=x.dtype, device=x.device)
    source, target = x, y
    if x.is_complex():
        source, target = x.view(torch.float64), y.view(torch.float64)
    elif x.dtype == torch.bool:
        source, target = x.view(torch.uint8), y.view(torch.uint8)
    if y.numel():
        turn[(triton.cdiv(y.numel(), 1024),)](source, target, y.numel(), m, n, K=k, BLOCK=1024)
    y = y.movedim((-2, -1), (a, b))
    return y if out is None else out.copy_(y)
