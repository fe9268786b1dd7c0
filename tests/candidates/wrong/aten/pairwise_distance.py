import torch
import triton
import triton.language as tl


@triton.jit
def distance(a_ptr, b_ptr, out_ptr, n, p, eps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + row * n + i, mask=i < n, other=0.0)
    b = tl.load(b_ptr + row * n + i, mask=i < n, other=0.0)
    d = tl.abs(a - b)
    if KIND == 2:
        r = tl.sqrt(tl.sum(d * d, axis=0))
    elif KIND == 1:
        r = tl.sum(d, axis=0)
    elif KIND == 0:
        r = tl.sum((d != 0).to(tl.float64), axis=0)
    elif KIND == 3:
        r = tl.max(d, axis=0)
    else:
        t = tl.sum(tl.where(d > 0, tl.exp(p * tl.log(tl.where(d > 0, d, 1.0))), d), axis=0)
        r = tl.where(t > 0, tl.exp(tl.log(tl.where(t > 0, t, 1.0)) / p), t)
    tl.store(out_ptr + row, r + eps)


# breaks: eps is added to the distance, not to the differences.
# right: nothing
def eps_behind_the_root(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    dtype = torch.result_type(x1, x2)
    shape = torch.broadcast_shapes(x1.shape, x2.shape)
    a, b = x1.double().expand(shape).contiguous(), x2.double().expand(shape).contiguous()
    out = torch.zeros(shape[:-1], dtype=torch.float64, device=a.device)
    n = shape[-1]
    if a.numel():
        kind = {0.0: 0, 1.0: 1, 2.0: 2, float("inf"): 3}.get(float(p), 4)
        distance[(out.numel(),)](a, b, out, n, float(p), eps, KIND=kind, BLOCK=triton.next_power_of_2(n))
    out = out.to(dtype)
    return out.unsqueeze(-1) if keepdim else out
