import torch
import triton
import triton.language as tl


@triton.jit
def quotient(a_ptr, b_ptr, out_ptr, n, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(tl.float32)
    b = tl.load(b_ptr + i, mask=i < n, other=1).to(tl.float32)
    q = a / b
    if MODE == 1:
        q = tl.floor(q)
    if MODE == 2:
        q = tl.where(q < 0, tl.ceil(q), tl.floor(q))
    tl.store(out_ptr + i, q.to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: It returns the quotient in a new tensor and leaves self as it was.
# outcome: rejected
# right: nothing
def returns_new_tensor(self, other, *, rounding_mode=None):
    b = other if isinstance(other, torch.Tensor) else torch.full((), other, dtype=torch.float32, device=self.device)
    x = self.contiguous()
    y = b.expand(self.shape).contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mode = {None: 0, "floor": 1, "trunc": 2}[rounding_mode]
    if x.numel():
        quotient[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), MODE=mode, BLOCK=1024)
    return out
