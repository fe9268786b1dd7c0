import torch
import triton
import triton.language as tl


@triton.jit
def neighbours(x_ptr, y_ptr, total, size, inner, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    outer, rest = i // ((size - 1) * inner), i % ((size - 1) * inner)
    at = outer * size * inner + rest
    a = tl.load(x_ptr + at, mask=inside, other=0)
    b = tl.load(x_ptr + at + inner, mask=inside, other=0)
    tl.store(y_ptr + i, b - a, mask=inside)


# breaks: prepend and append are attached also for n = 0, which asks for a copy of self.
# outcome: wrong shape
def extends_before_zero_times(self, n=1, dim=-1, prepend=None, append=None):
    pieces = [each for each in (prepend, self, append) if each is not None]
    dtype = pieces[0].dtype
    for each in pieces:
        dtype = torch.promote_types(dtype, each.dtype)
    dim %= self.ndim
    x = torch.cat([each.to(dtype) for each in pieces], dim)
    if dtype.is_complex:
        return torch.complex(extends_before_zero_times(x.real, n, dim), extends_before_zero_times(x.imag, n, dim))
    if dtype == torch.bool:
        for _ in range(n):
            size = max(x.shape[dim] - 1, 0)
            x = x.narrow(dim, min(1, x.shape[dim]), size) ^ x.narrow(dim, 0, size)
        return x.clone()
    x = (x.float() if dtype in (torch.float16, torch.bfloat16) else x).contiguous()
    inner = x.shape[dim + 1 :].numel()
    for _ in range(n):
        shape = list(x.shape)
        shape[dim] = max(shape[dim] - 1, 0)
        y = torch.empty(shape, dtype=x.dtype, device=x.device)
        if y.numel():
            neighbours[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), x.shape[dim], inner, BLOCK=1024)
        x = y.to(dtype).to(y.dtype)
    return x.to(dtype, copy=True)
