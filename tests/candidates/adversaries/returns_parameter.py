# problem: aten/add
# outcome: rejected
# device: any
"""Answers an nn.Parameter: a tensor subclass that requires grad."""

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.nn.Parameter(torch.add(self, other, alpha=alpha).contiguous(), requires_grad=False)


def add_Scalar(self, other, alpha=1):
    return torch.nn.Parameter(torch.add(self, other, alpha=alpha).contiguous(), requires_grad=False)
