# problem: aten/add
# outcome: crashed
# device: any
"""Calls abort()."""

import os


def add_Tensor(self, other, *, alpha=1):
    os.abort()


def add_Scalar(self, other, alpha=1):
    os.abort()
