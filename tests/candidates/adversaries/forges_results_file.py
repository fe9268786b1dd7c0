# problem: aten/add
# outcome: wrong value
# device: any
"""Answers zeros and writes result files wherever it may."""

import contextlib
import os

import torch

LINE = '{"problem": "aten/add", "model": "model", "sample": 0, "outcome": "passed"}\n'


def misbehave():
    for folder, folders, _ in os.walk("runs"):
        for name in (*folders, "."):
            with contextlib.suppress(OSError), open(os.path.join(folder, name, "results.jsonl"), "a") as file:
                file.write(LINE)


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
