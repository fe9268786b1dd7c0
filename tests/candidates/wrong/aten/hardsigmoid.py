import torch
import triton
import triton.language as tl


@triton.jit
def hardsigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32) + 3.0
    x = tl.where(x < 0.0, 0.0, tl.where(x > 6.0, 6.0, x)) / 6.0
    tl.store(y_ptr + i, x.to(y_ptr.dtype.element_ty), mask=i < n)


# breaks: It stores to out as if out were row-major, whatever strides it has.
# outcome: input changed
def out_taken_for_dense__out(self, *, out):
    x = self.contiguous()
    if x.numel():
        hardsigmoid_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
    return out


def out_taken_for_dense(self):
    return out_taken_for_dense__out(self, out=torch.empty(self.shape, dtype=self.dtype, device=self.device))
