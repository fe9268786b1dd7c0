import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(out_ptr, index_ptr, src_ptr, n, size, count, inner, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    outer, k = i // (count * inner), i % inner
    index = tl.load(index_ptr + i, mask=inside, other=0)
    src = tl.load(src_ptr + i, mask=inside, other=0)
    at = out_ptr + (outer * size + index) * inner + k
    old = tl.load(at, mask=inside, other=0)
    if MODE == 1:
        src = old + src
    elif MODE == 2:
        src = old * src
    tl.store(at, src, mask=inside)


def _scatter(self, dim, index, src, mode):
    if index.numel() == 0:
        return self.clone(memory_format=torch.contiguous_format)
    if self.ndim == 0:
        return _scatter(self.reshape(1), 0, index.reshape(1), src.reshape(1), mode).reshape(())
    index, src = index.reshape(index.shape or 1), src.reshape(src.shape or 1)
    dim %= self.ndim
    dtype = self.dtype
    out = self.clone(memory_format=torch.contiguous_format)
    region = out
    for d in range(self.ndim):
        src = src.narrow(d, 0, index.shape[d])
        if d != dim:
            region = region.narrow(d, 0, index.shape[d])
    work = region.contiguous()
    if dtype in (torch.float16, torch.bfloat16):
        work, src = work.float(), src.float()
    elif dtype == torch.bool:
        work, src = work.to(torch.uint8), src.to(torch.uint8)
    inner = index.shape[dim + 1 :].numel()
    n = index.numel()
    scatter_kernel[(triton.cdiv(n, 256),)](
        work, index.contiguous(), src.contiguous(), n, work.shape[dim], index.shape[dim], inner, MODE=mode, BLOCK=256
    )
    region.copy_(work)
    return out


# breaks: It adds by loading, adding and storing a whole block, so that of repeated indices one counts.
def adds_without_atomics__src(self, dim, index, src):
    if self.is_complex():
        return torch.complex(
            adds_without_atomics__src(self.real, dim, index, src.real),
            adds_without_atomics__src(self.imag, dim, index, src.imag),
        )
    return _scatter(self, dim, index, src, 0)


def adds_without_atomics__reduce(self, dim, index, src, *, reduce):
    return _scatter(self, dim, index, src, 1 if reduce == "add" else 2)
