import torch
import triton
import triton.language as tl


@triton.jit
def pow_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    z = tl.exp(y * tl.log(x))
    z = tl.where(y == 0, 1.0, z)
    z = tl.where(x == 1, 1.0, z)
    tl.store(out_ptr + i, z, mask=i < n)


# breaks: A power is exp(y log x), which is NaN for every negative base.
def exp_of_log(self, exponent, *, out=None):
    dtype = torch.result_type(self, exponent)
    device = (self if isinstance(self, torch.Tensor) else exponent).device
    x = torch.as_tensor(self, dtype=torch.float64, device=device)
    y = torch.as_tensor(exponent, dtype=torch.float64, device=device)
    shape = torch.broadcast_shapes(x.shape, y.shape)
    x, y = x.expand(shape).contiguous(), y.expand(shape).contiguous()
    z = torch.empty(shape, dtype=torch.float64, device=device)
    if z.numel():
        pow_kernel[(triton.cdiv(z.numel(), 1024),)](x, y, z, z.numel(), BLOCK=1024)
    return z.to(dtype) if out is None else out.copy_(z)
