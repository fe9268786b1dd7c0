import torch
import triton
import triton.language as tl


@triton.jit
def axpy(x_ptr, y_ptr, n, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(x_ptr + i, (x + alpha * y).to(x_ptr.dtype.element_ty), mask=i < n)


# breaks: A self that is not contiguous is copied, the copy is changed, and self itself comes back unchanged.
def writes_a_copy(self, other, *, alpha=1):
    x = self.contiguous()
    y = torch.as_tensor(other, device=self.device).expand(self.shape).contiguous()
    if x.numel():
        axpy[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), float(alpha), BLOCK=1024)
    return self
