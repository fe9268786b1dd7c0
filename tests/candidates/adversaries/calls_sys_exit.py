# problem: aten/add
# outcome: runtime error
# device: any
"""Raises SystemExit(0) in its call."""

import sys


def add_Tensor(self, other, *, alpha=1):
    sys.exit(0)


def add_Scalar(self, other, alpha=1):
    sys.exit(0)
