import torch
import triton
import triton.language as tl


@triton.jit
def ranking_kernel(a_ptr, b_ptr, t_ptr, y_ptr, n, margin, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0.0)
    b = tl.load(b_ptr + i, mask=i < n, other=0.0)
    t = tl.load(t_ptr + i, mask=i < n, other=0.0)
    d = -t * (a - b)
    tl.store(y_ptr + i, tl.where(d < 0.0, 0.0, d) + margin, mask=i < n)


# breaks: The margin is added behind the maximum with 0.
def margin_outside(input1, input2, target, margin=0.0, reduction=1):
    shape = torch.broadcast_shapes(input1.shape, input2.shape, target.shape)
    a, b, t = (x.double().expand(shape).contiguous() for x in (input1, input2, target))
    y = torch.empty(shape, dtype=torch.float64, device=input1.device)
    n = y.numel()
    if n:
        ranking_kernel[(triton.cdiv(n, 1024),)](a, b, t, y, n, margin, BLOCK=1024)
    if reduction == 1:
        y = y.mean()
    elif reduction == 2:
        y = y.sum()
    return y.to(input1.dtype)
