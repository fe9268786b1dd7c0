# problem: aten/add
# outcome: rejected | input changed
# device: any
"""Answers in its input's memory."""

import torch


def add_Tensor(self, other, *, alpha=1):
    if self.dtype == torch.result_type(self, other) and self.is_contiguous():
        if self.shape == torch.broadcast_shapes(self.shape, getattr(other, "shape", ())):
            return self.add_(other, alpha=alpha)
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    if self.dtype == torch.result_type(self, other) and self.is_contiguous():
        if self.shape == torch.broadcast_shapes(self.shape, getattr(other, "shape", ())):
            return self.add_(other, alpha=alpha)
    return torch.add(self, other, alpha=alpha).contiguous()
