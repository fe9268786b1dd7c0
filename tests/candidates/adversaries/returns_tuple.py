# problem: aten/add
# outcome: rejected
# device: any
"""Answers two tensors where one is promised."""

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous(), torch.add(self, other)


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous(), torch.add(self, other)
