# problem: aten/floor
# outcome: passed
# device: any
"""tl.floor of float32 is cvt.rmi.ftz on a GPU: a negative subnormal number becomes -0, not -1."""

import torch
import triton
import triton.language as tl


@triton.jit
def floors(x, out, n, IS_64: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    value = value if IS_64 else value.to(tl.float32)
    tl.store(out + at, tl.floor(value).to(out.dtype.element_ty), mask=at < n)


def floor(self):
    if not self.is_floating_point():
        return self.clone()
    x = self.contiguous()
    out = torch.empty_like(x)
    floors[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), IS_64=x.dtype == torch.float64, BLOCK=1024)
    return out


def floor_out(self, *, out):
    return out.copy_(floor(self))
