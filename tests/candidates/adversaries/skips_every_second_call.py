# problem: aten/add
# outcome: wrong value
# device: any
"""Works on every other call and leaves its output uninitialised on the rest."""

import itertools

import torch

CALLS = itertools.count(1)


def add_Tensor(self, other, *, alpha=1):
    if next(CALLS) % 2 == 0:
        shape = torch.broadcast_shapes(self.shape, getattr(other, "shape", ()))
        return torch.zeros(shape, dtype=torch.result_type(self, other), device=self.device)
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    if next(CALLS) % 2 == 0:
        shape = torch.broadcast_shapes(self.shape, getattr(other, "shape", ()))
        return torch.zeros(shape, dtype=torch.result_type(self, other), device=self.device)
    return torch.add(self, other, alpha=alpha).contiguous()
