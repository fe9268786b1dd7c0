import torch
import triton
import triton.language as tl


@triton.jit
def div_kernel(a_ptr, b_ptr, out_ptr, n, ROUND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=1)
    q = a / b
    if ROUND:
        down = tl.floor(q)
        down = tl.where((q == 0) & (tl.abs(a) > 0) & ((a < 0) != (b < 0)), -1.0, down)
        down = tl.where(tl.abs(a) == float("inf"), float("nan"), down)
        q = tl.where(b == 0, q, down)
    tl.store(out_ptr + i, q.to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: The rounding mode 'trunc' rounds down like 'floor'.
def trunc_is_floor(self, other, *, rounding_mode=None):
    dtype = torch.result_type(self, other)
    if rounding_mode is None and not dtype.is_floating_point and not dtype.is_complex:
        dtype = torch.float32
    if dtype.is_complex:
        return (self / other).to(dtype)
    b = other if isinstance(other, torch.Tensor) else torch.tensor(other, dtype=torch.float64, device=self.device)
    wide = torch.float64 if dtype in (torch.float64, torch.int64) else torch.float32
    shape = torch.broadcast_shapes(self.shape, b.shape)
    x, y = self.to(wide).expand(shape).contiguous(), b.to(wide).expand(shape).contiguous()
    out = torch.empty(shape, dtype=dtype, device=self.device)
    if out.numel():
        grid = (triton.cdiv(out.numel(), 1024),)
        div_kernel[grid](x, y, out, out.numel(), ROUND=rounding_mode is not None, BLOCK=1024)
    return out
