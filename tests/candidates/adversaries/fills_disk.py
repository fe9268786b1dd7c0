# problem: aten/add
# outcome: rejected | wrong value | runtime error | crashed
# device: any
"""Writes a file of two gigabytes into its folder, then answers zeros."""

import contextlib
import os

import torch


def misbehave():
    block = b"\0" * (64 << 20)
    with contextlib.suppress(OSError), open("filler", "wb") as file:
        for _ in range(32):
            file.write(block)
    with contextlib.suppress(OSError):
        os.remove("filler")


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
