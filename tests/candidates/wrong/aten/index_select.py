import torch
import triton
import triton.language as tl


@triton.jit
def select_slices(x_ptr, index_ptr, out_ptr, n, count, size, inner, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    outer, which, k = i // (count * inner), (i // inner) % count, i % inner
    at = tl.load(index_ptr + which, mask=inside, other=0).to(tl.int64)
    at = tl.where((at >= 0) & (at < size), at, 0)
    tl.store(out_ptr + i, tl.load(x_ptr + (outer * size + at) * inner + k, mask=inside, other=0), mask=inside)


# breaks: A stepped or expanded index is read as if its numbers were neighbours.
def steps_of_index_ignored(self, dim, index):
    if self.ndim == 0:
        return self.clone()
    dim %= self.ndim
    x = self.contiguous()
    shape = list(x.shape)
    shape[dim] = index.numel()
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    source, target, words = x, out, 1
    if x.is_complex():
        source, target, words = torch.view_as_real(x), torch.view_as_real(out), 2
    elif x.dtype == torch.bool:
        source, target = x.view(torch.uint8), out.view(torch.uint8)
    n = target.numel()
    if n:
        inner = x.shape[dim + 1 :].numel() * words
        grid = (triton.cdiv(n, 1024),)
        select_slices[grid](source, index, target, n, index.numel(), x.shape[dim], inner, BLOCK=1024)
    return out
