# problem: aten/add
# outcome: rejected
# device: any
"""Answers a numpy array."""

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).float().cpu().numpy()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).float().cpu().numpy()
