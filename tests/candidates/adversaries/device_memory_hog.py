# problem: aten/add
# outcome: out of memory
# device: cuda
"""Takes device memory until there is none."""

import torch


def add_Tensor(self, other, *, alpha=1):
    held = []
    while True:
        held.append(torch.ones(1 << 30, device=self.device))


def add_Scalar(self, other, alpha=1):
    held = []
    while True:
        held.append(torch.ones(1 << 30, device=self.device))
