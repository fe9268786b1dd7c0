import torch
import triton
import triton.language as tl


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(y_ptr + offsets, (x / (1.0 + tl.exp(-x))).to(y_ptr.dtype.element_ty), mask=mask)


# breaks: The grid is n // BLOCK, so the last, partly filled block is never computed.
def grid_one_short(self):
    x = self.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    block = 256
    grid = (max(1, n // block),)
    silu_kernel[grid](x, y, n, BLOCK=block)
    return y


@triton.jit
def silu_inplace(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    v = x.to(tl.float32)
    v = v * (1.0 / (1.0 + tl.exp(-v)))
    tl.store(x_ptr + i, v.to(x_ptr.dtype.element_ty), mask=i < n)


# breaks: It writes into self.contiguous(), which is self itself where self is contiguous.
# outcome: input changed
# right: nothing
def overwrites_contiguous_input(self):
    # contiguous() makes a copy, which can be worked on
    out = self.contiguous()
    n = out.numel()
    if n > 0:
        silu_inplace[(triton.cdiv(n, 1024),)](out, n, BLOCK=1024)
    return out.clone()
