import torch
import triton
import triton.language as tl


@triton.jit
def copy_slab(x_ptr, out_ptr, n, inner, x_size, out_size, start, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    outer, rest = i // (x_size * inner), i % (x_size * inner)
    at = outer * out_size * inner + start * inner + rest
    tl.store(out_ptr + at, tl.load(x_ptr + i, mask=i < n, other=0), mask=i < n)


# breaks: What lies behind dim is taken as shape[dim + 1:], which for -1 is the whole shape.
def slice_behind_negative_dim(tensors, dim=0):
    dtype = tensors[0].dtype
    for each in tensors[1:]:
        dtype = torch.promote_types(dtype, each.dtype)
    whole = [each for each in tensors if tuple(each.shape) != (0,)] or [tensors[0]]
    shape = list(whole[0].shape)
    shape[dim] = sum(each.shape[dim] for each in whole)
    out = torch.empty(shape, dtype=dtype, device=whole[0].device)
    inner = torch.Size(shape[dim + 1 :]).numel()
    start = 0
    flat = torch.view_as_real(out) if dtype.is_complex else out.view(torch.int8) if dtype == torch.bool else out
    parts = 2 if dtype.is_complex else 1
    for each in whole:
        x = each.to(dtype).contiguous()
        x = torch.view_as_real(x) if dtype.is_complex else x.view(torch.int8) if dtype == torch.bool else x
        if x.numel():
            grid = (triton.cdiv(x.numel(), 1024),)
            sizes = (inner * parts, each.shape[dim], shape[dim], start)
            copy_slab[grid](x, flat, x.numel(), *sizes, BLOCK=1024)
        start += each.shape[dim]
    return out
