# problem: aten/add
# outcome: rejected | crashed
# device: any
"""Starts 100 children that sleep."""

import os
import time


def add_Tensor(self, other, *, alpha=1):
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    time.sleep(600)


def add_Scalar(self, other, alpha=1):
    for _ in range(100):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    time.sleep(600)
