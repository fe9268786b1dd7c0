# problem: aten/add
# outcome: timeout
# device: any
"""Sleeps in its call for ever."""

import time


def add_Tensor(self, other, *, alpha=1):
    time.sleep(1_000_000)


def add_Scalar(self, other, alpha=1):
    time.sleep(1_000_000)
