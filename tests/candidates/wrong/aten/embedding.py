import torch
import triton
import triton.language as tl


@triton.jit
def lookup(weight_ptr, index_ptr, out_ptr, columns, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.load(index_ptr + row).to(tl.int64)
    for first in range(0, columns, BLOCK):
        j = first + tl.arange(0, BLOCK)
        w = tl.load(weight_ptr + index * columns + j * column_stride, mask=j < columns)
        tl.store(out_ptr + row * columns + j, w, mask=j < columns)


# breaks: A row of the table is taken to begin embedding_dim words behind the one before.
def row_stride_ignored(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    columns = weight.shape[1]
    out = torch.empty((*indices.shape, columns), dtype=weight.dtype, device=weight.device)
    flat = indices.contiguous().reshape(-1)
    if out.numel():
        lookup[(flat.numel(),)](weight, flat, out, columns, weight.stride(1), BLOCK=64)
    return out
