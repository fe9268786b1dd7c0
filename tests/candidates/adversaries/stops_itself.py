# problem: aten/add
# outcome: timeout | rejected
# device: any
"""Stops itself with SIGSTOP; as process 1 of a PID namespace it runs on, and answers nothing."""

import os
import signal


def add_Tensor(self, other, *, alpha=1):
    os.kill(os.getpid(), signal.SIGSTOP)


def add_Scalar(self, other, alpha=1):
    os.kill(os.getpid(), signal.SIGSTOP)
