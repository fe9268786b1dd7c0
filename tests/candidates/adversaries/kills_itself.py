# problem: aten/add
# outcome: crashed | rejected
# device: any
"""Sends SIGKILL to itself; as process 1 of a PID namespace it survives that, and answers nothing."""

import os
import signal


def add_Tensor(self, other, *, alpha=1):
    os.kill(os.getpid(), signal.SIGKILL)


def add_Scalar(self, other, alpha=1):
    os.kill(os.getpid(), signal.SIGKILL)
