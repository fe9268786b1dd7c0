import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(a_ptr, b_ptr, out_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(WIDE)
    b = tl.load(b_ptr + i, mask=i < n, other=0).to(WIDE)
    tl.store(out_ptr + i, (a * b).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: It multiplies whole numbers as float32, which has 24 bits for them and does not wrap.
def whole_numbers_through_float(self, other):
    if not isinstance(other, torch.Tensor):
        dtype = torch.result_type(self, other)
        b = torch.full((), other, dtype=torch.float64 if isinstance(other, float) else torch.int64, device=self.device)
    else:
        dtype, b = torch.result_type(self, other), other
    shape = torch.broadcast_shapes(self.shape, b.shape)
    a, b = self.expand(shape).contiguous(), b.expand(shape).contiguous()
    out = torch.empty(shape, dtype=dtype, device=self.device)
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    if out.numel():
        mul_kernel[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), WIDE=wide, BLOCK=1024)
    return out
