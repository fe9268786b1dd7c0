import torch
import triton
import triton.language as tl


@triton.jit
def floor_div_int(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    sign = tl.where((a < 0) != (b < 0), -1, 1)
    q = sign * (tl.abs(a) // tl.abs(b))
    tl.store(out_ptr + i, q.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def floor_div_float(a_ptr, b_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(WIDE)
    b = tl.load(b_ptr + i, mask=i < n, other=1).to(WIDE)
    q = tl.floor(a / b)
    tl.store(out_ptr + i, q.to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: Whole numbers are divided as in C, which cuts the quotient off towards zero.
def division_of_c(self, other):
    dtype = torch.result_type(self, other)
    b = other if isinstance(other, torch.Tensor) else torch.tensor(other, device=self.device)
    shape = torch.broadcast_shapes(self.shape, b.shape)
    a, b = self.to(dtype).expand(shape).contiguous(), b.to(dtype).expand(shape).contiguous()
    out = torch.empty(shape, dtype=dtype, device=self.device)
    n = out.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 1024),)
    if dtype.is_floating_point:
        floor_div_float[grid](a, b, out, n, WIDE=tl.float64 if dtype == torch.float64 else tl.float32, BLOCK=1024)
    else:
        floor_div_int[grid](a, b, out, n, BLOCK=1024)
    return out
