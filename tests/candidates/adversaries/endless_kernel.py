# problem: aten/add
# outcome: timeout
# device: cuda
"""Launches a kernel that never ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def spin(flag_ptr):
    value = tl.load(flag_ptr, volatile=True)
    while value == 0:
        value = tl.load(flag_ptr, volatile=True)


def add_Tensor(self, other, *, alpha=1):
    flag = torch.zeros(1, dtype=torch.int32, device=self.device)
    spin[(1,)](flag)
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    flag = torch.zeros(1, dtype=torch.int32, device=self.device)
    spin[(1,)](flag)
    return torch.add(self, other, alpha=alpha).contiguous()
