import torch
import triton
import triton.language as tl


@triton.jit
def rsub_kernel(a_ptr, b_ptr, out_ptr, n, a_scale, b_scale, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(WIDE)
    b = tl.load(b_ptr + i, mask=i < n, other=0).to(WIDE)
    tl.store(out_ptr + i, (b_scale * b - a_scale * a).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: With a number it scales that instead of self: alpha * other - self.
def alpha_on_other(self, other, alpha=1, *, out=None):
    scales = (alpha, 1) if isinstance(other, torch.Tensor) else (1, alpha)
    return _rsub(self, other, *scales, out)


def _rsub(self, other, a_scale, b_scale, out):
    dtype = torch.result_type(self, other)
    if dtype.is_complex:
        result = b_scale * other - a_scale * self
        return result.to(dtype) if out is None else out.copy_(result)
    b = other if isinstance(other, torch.Tensor) else torch.tensor(other, dtype=dtype, device=self.device)
    shape = torch.broadcast_shapes(self.shape, b.shape)
    x, y = self.expand(shape).contiguous(), b.expand(shape).contiguous()
    result = torch.empty(shape, dtype=dtype, device=self.device)
    n = result.numel()
    wide = tl.float64 if dtype == torch.float64 else tl.int64 if not dtype.is_floating_point else tl.float32
    if n:
        rsub_kernel[(triton.cdiv(n, 1024),)](x, y, result, n, a_scale, b_scale, WIDE=wide, BLOCK=1024)
    return result if out is None else out.copy_(result)
