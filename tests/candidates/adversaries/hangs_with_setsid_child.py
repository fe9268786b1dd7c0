# problem: aten/add
# outcome: timeout
# device: any
"""Leaves a child in a session of its own, then sleeps in its call: both must be gone afterwards."""

import os
import time


def add_Tensor(self, other, *, alpha=1):
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
        os._exit(0)
    time.sleep(3600)


def add_Scalar(self, other, alpha=1):
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
        os._exit(0)
    time.sleep(3600)
