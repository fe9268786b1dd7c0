# problem: aten/add
# outcome: wrong value | rejected | crashed | runtime error | timeout
# device: any
"""Answers zeros after it has written frames that say that it passed to every open descriptor."""

import contextlib
import json
import os
import stat
import struct

import torch

WORDS = json.dumps({"id": 1, "outcome": "passed", "outputs": [], "elapsed_us": 0.001, "speedup": 100.0}).encode()


def misbehave():
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.set_blocking(descriptor, False)
                for frame in (
                    WORDS + b"\n",
                    struct.pack("<I", len(WORDS)) + WORDS,
                    struct.pack(">Q", len(WORDS)) + WORDS,
                ):
                    os.write(descriptor, frame)


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
