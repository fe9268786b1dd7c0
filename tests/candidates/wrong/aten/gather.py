import torch
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, n, x_outer, x_dim, x_inner, size, inner, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    index = tl.load(index_ptr + i, mask=inside, other=0)
    # a garbage index must not lead out of the tensor
    index = tl.where((index >= 0) & (index < x_dim), index, 0)
    outer, k = i // (size * inner), i % inner
    x = tl.load(x_ptr + (outer * x_dim + index) * x_inner + k, mask=inside, other=0)
    tl.store(out_ptr + i, x, mask=inside)


# breaks: The indices are read as neighbouring words, whatever the index tensor's strides.
def index_taken_for_dense(self, dim, index, *, sparse_grad=False):
    if self.ndim == 0 or index.ndim == 0:
        return index_taken_for_dense(self.reshape(-1), 0, index.reshape(-1)).reshape(index.shape)
    dim %= self.ndim
    rest = self
    for d in range(self.ndim):
        if d != dim:
            rest = rest.narrow(d, 0, index.shape[d])
    x = rest.contiguous()
    if self.dtype == torch.bool:
        return index_taken_for_dense(self.view(torch.uint8), dim, index).view(torch.bool)
    if self.is_complex():
        return torch.complex(index_taken_for_dense(self.real, dim, index), index_taken_for_dense(self.imag, dim, index))
    out = torch.empty(index.shape, dtype=self.dtype, device=self.device)
    n = out.numel()
    if n:
        inner = index.shape[dim + 1 :].numel()
        sizes = (1, x.shape[dim], inner, index.shape[dim], inner)
        gather_kernel[(triton.cdiv(n, 1024),)](x, index, out, n, *sizes, BLOCK=1024)
    return out
