# problem: aten/add
# outcome: rejected
# device: any
"""Answers a list of numbers."""

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).tolist()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).tolist()
