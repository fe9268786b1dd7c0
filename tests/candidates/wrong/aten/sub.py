import torch
import triton
import triton.language as tl


@triton.jit
def sub_kernel(a_ptr, b_ptr, out_ptr, n, a_scale, b_scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0).to(tl.float32)
    b = tl.load(b_ptr + i, mask=i < n, other=0).to(tl.float32)
    tl.store(out_ptr + i, (a_scale * a - b_scale * b).to(out_ptr.dtype.element_ty), mask=i < n)


# breaks: It puts the larger operand first to broadcast the other one, and forgets that a difference has a sign.
def swaps_to_broadcast(self, other, *args, alpha=1):
    if args:
        alpha = args[0]
    dtype = torch.result_type(self, other)
    big, small = self, torch.as_tensor(other, device=self.device)
    scales = (1.0, float(alpha))
    if small.numel() > big.numel():
        big, small = small, big
        scales = (float(alpha), 1.0)
    shape = torch.broadcast_shapes(big.shape, small.shape)
    a, b = big.expand(shape).contiguous(), small.expand(shape).contiguous()
    out = torch.empty(shape, dtype=dtype, device=self.device)
    if out.numel():
        sub_kernel[(triton.cdiv(out.numel(), 1024),)](a, b, out, out.numel(), scales[0], scales[1], BLOCK=1024)
    return out
