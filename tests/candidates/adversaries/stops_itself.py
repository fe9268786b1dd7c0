# problem: aten/add
# outcome: timeout
# device: any
"""Stops itself with SIGSTOP, so that it answers neither calls nor polite signals."""

import os
import signal


def add_Tensor(self, other, *, alpha=1):
    os.kill(os.getpid(), signal.SIGSTOP)


def add_Scalar(self, other, alpha=1):
    os.kill(os.getpid(), signal.SIGSTOP)
