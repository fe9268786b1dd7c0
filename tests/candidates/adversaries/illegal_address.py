# problem: aten/add
# outcome: runtime error | crashed
# device: cuda
"""Stores to an address of the device that is nobody's."""

import torch
import triton
import triton.language as tl


@triton.jit
def poke(out_ptr, far):
    tl.store(out_ptr + far, 1.0)


def add_Tensor(self, other, *, alpha=1):
    out = torch.empty(4, device=self.device)
    poke[(1,)](out, 1 << 44)
    torch.cuda.synchronize()
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    out = torch.empty(4, device=self.device)
    poke[(1,)](out, 1 << 44)
    torch.cuda.synchronize()
    return torch.add(self, other, alpha=alpha).contiguous()
