# problem: aten/add
# outcome: crashed
# device: any
"""Reads address 0."""

import ctypes


def add_Tensor(self, other, *, alpha=1):
    ctypes.string_at(0)


def add_Scalar(self, other, alpha=1):
    ctypes.string_at(0)
