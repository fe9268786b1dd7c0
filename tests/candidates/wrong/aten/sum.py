import torch
import triton
import triton.language as tl


@triton.jit
def reduce_rows(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


# breaks: Negative dimensions are compared with positive ones and never found, so nothing is summed along them.
# outcome: wrong shape
def negative_dims_not_found__dim_IntList(self, dim, keepdim=False, *, dtype=None):
    whole = not self.is_floating_point() and not self.is_complex()
    dtype = dtype or (torch.int64 if whole else self.dtype)
    if dtype.is_complex:
        x = self.to(dtype)
        return torch.complex(
            negative_dims_not_found__dim_IntList(x.real, dim, keepdim),
            negative_dims_not_found__dim_IntList(x.imag, dim, keepdim),
        )
    x = self.to(torch.int64 if dtype == torch.int64 else torch.float64)
    reduced = list(dim) if dim else list(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in reduced]
    reduced = [d for d in range(x.ndim) if d not in kept]
    flat = x.permute(*kept, *reduced).contiguous() if x.ndim else x
    shape = [x.shape[d] for d in kept]
    out = torch.zeros(shape, dtype=x.dtype, device=x.device)
    rows = out.numel()
    if x.numel():
        n = x.numel() // rows
        reduce_rows[(rows,)](flat, out, n, BLOCK=triton.next_power_of_2(n))
    if keepdim:
        for d in reduced:
            out = out.unsqueeze(d)
    return out.to(dtype)


def negative_dims_not_found(self, *, dtype=None):
    return negative_dims_not_found__dim_IntList(self, None, dtype=dtype)


@triton.jit
def row_sum(x_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), WIDE)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + i, mask=i < n, other=0).to(WIDE)
    tl.store(out_ptr + row, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty))


# breaks: Whole numbers are added in float32.
def whole_numbers_in_float(self, dim=None, keepdim=False, *, dtype=None):
    if dtype is None:
        dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.int64
    x = self.to(dtype)
    if dtype.is_complex:
        return torch.complex(whole_numbers_in_float(x.real, dim, keepdim), whole_numbers_in_float(x.imag, dim, keepdim))
    dims = sorted({d % max(x.ndim, 1) for d in dim}) if dim else list(range(x.ndim))
    kept = [d for d in range(x.ndim) if d not in dims]
    shape = [x.shape[d] for d in kept]
    rows = x.permute(*kept, *dims).reshape(-1).contiguous() if x.ndim else x.reshape(1)
    full = [1 if d in dims else x.shape[d] for d in range(x.ndim)]
    count = torch.Size(shape).numel()
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    out = torch.zeros(shape, dtype=torch.float32 if dtype == torch.bfloat16 else dtype, device=x.device)
    if x.numel():
        row_sum[(count,)](rows, out, x.numel() // count, WIDE=wide, BLOCK=1024)
    out = out.to(dtype)
    return out.reshape(full) if keepdim else out
