# problem: aten/add
# outcome: timeout
# device: any
"""Never comes back from its import."""

import time

import torch

while True:
    time.sleep(3600)


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
