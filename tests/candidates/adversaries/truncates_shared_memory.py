# problem: aten/add
# outcome: wrong value | crashed | rejected | runtime error
# device: any
"""Answers zeros after it has truncated every file that it holds, the memory shared with the referee included."""

import contextlib
import os

import torch


def misbehave():
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)


def add_Tensor(self, other, *, alpha=1):
    misbehave()
    return torch.zeros(torch.broadcast_shapes(self.shape, getattr(other, "shape", ())), device=self.device).to(
        torch.result_type(self, other)
    )


def add_Scalar(self, other, alpha=1):
    misbehave()
    return torch.zeros(torch.broadcast_shapes(self.shape, getattr(other, "shape", ())), device=self.device).to(
        torch.result_type(self, other)
    )
