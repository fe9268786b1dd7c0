# problem: aten/add
# outcome: crashed
# device: any
"""Sends SIGKILL to itself, as a kernel short of memory would."""

import os
import signal


def add_Tensor(self, other, *, alpha=1):
    os.kill(os.getpid(), signal.SIGKILL)


def add_Scalar(self, other, alpha=1):
    os.kill(os.getpid(), signal.SIGKILL)
