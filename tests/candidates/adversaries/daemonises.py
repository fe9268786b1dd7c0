# problem: aten/add
# outcome: passed
# device: any
"""Is right, and leaves a daemon in a session of its own that must be gone when the candidate is."""

import os
import time

import torch

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(64):
            try:
                os.close(descriptor)
            except OSError:
                pass
        time.sleep(3600)
    os._exit(0)
os.wait()


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
