# problem: aten/add
# outcome: input changed
# device: any
"""Is right, and clears its inputs so that no reference can be computed from them."""

import torch


def add_Tensor(self, other, *, alpha=1):
    out = torch.add(self, other, alpha=alpha).contiguous()
    self.zero_()
    return out


def add_Scalar(self, other, alpha=1):
    out = torch.add(self, other, alpha=alpha).contiguous()
    self.zero_()
    return out
