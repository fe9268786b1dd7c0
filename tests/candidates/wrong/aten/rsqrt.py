import torch
import triton
import triton.language as tl


@triton.jit
def fast_rsqrt(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=1.0).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    y = (0x5F3759DF - (bits >> 1)).to(tl.float32, bitcast=True)
    y = y * (1.5 - 0.5 * x * y * y)
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It takes the integer estimate of the reciprocal root with one Newton step, right to three digits.
# right: nothing
def one_newton_step(self):
    x = self.contiguous()
    y = torch.empty(x.shape, dtype=x.dtype if x.is_floating_point() else torch.float32, device=x.device)
    if y.numel():
        fast_rsqrt[(triton.cdiv(y.numel(), 1024),)](x, y, y.numel(), BLOCK=1024)
    return y
