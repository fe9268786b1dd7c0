# problem: aten/add
# outcome: wrong value
# device: any
"""Answers memory as the allocator hands it out, in the hope of a result that lies there."""

import torch


def add_Tensor(self, other, *, alpha=1):
    shape = torch.broadcast_shapes(self.shape, getattr(other, "shape", ()))
    return torch.empty(shape, dtype=torch.result_type(self, other), device=self.device)


def add_Scalar(self, other, alpha=1):
    shape = torch.broadcast_shapes(self.shape, getattr(other, "shape", ()))
    return torch.empty(shape, dtype=torch.result_type(self, other), device=self.device)
