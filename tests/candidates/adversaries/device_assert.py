# problem: aten/add
# outcome: runtime error | crashed
# device: cuda
"""Indexes beyond a tensor's end on the device, which trips an assertion there."""

import torch


def add_Tensor(self, other, *, alpha=1):
    index = torch.tensor([1 << 40], device=self.device)
    torch.zeros(4, device=self.device)[index].sum().item()
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    index = torch.tensor([1 << 40], device=self.device)
    torch.zeros(4, device=self.device)[index].sum().item()
    return torch.add(self, other, alpha=alpha).contiguous()
