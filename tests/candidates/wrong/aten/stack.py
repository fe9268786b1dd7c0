import torch
import triton
import triton.language as tl


@triton.jit
def put_slice(x_ptr, out_ptr, n, inner, count, which, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (i // inner) * count * inner + which * inner + i % inner
    tl.store(out_ptr + at, tl.load(x_ptr + i, mask=i < n), mask=i < n)


# breaks: Every tensor is read as numel() neighbouring words, whatever its strides.
def inputs_taken_for_dense(tensors, dim=0):
    dtype = tensors[0].dtype
    for each in tensors:
        dtype = torch.promote_types(dtype, each.dtype)
    shape = list(tensors[0].shape)
    dim = dim % (len(shape) + 1)
    out = torch.empty(shape[:dim] + [len(tensors)] + shape[dim:], dtype=dtype, device=tensors[0].device)
    inner = torch.Size(shape[dim:]).numel()
    for which, each in enumerate(tensors):
        x = each.to(dtype)
        y = out
        words = 1
        if dtype.is_complex:
            x, y, words = torch.view_as_real(x), torch.view_as_real(y), 2
        elif dtype == torch.bool:
            x, y = x.view(torch.uint8), y.view(torch.uint8)
        n = x.numel()
        if n:
            put_slice[(triton.cdiv(n, 1024),)](x, y, n, inner * words, len(tensors), which, BLOCK=1024)
    return out
