# problem: aten/add
# outcome: timeout
# device: any
"""Keeps the processor busy in its import for ever."""

import torch

while True:
    pass


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
