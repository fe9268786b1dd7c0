# outcome: wrong value
# breaks: It converts the number to an integer first.

import torch


def fill__Scalar(self, value):
    if not isinstance(value, complex) and value == value and abs(value) != float("inf"):
        value = int(value)
    self.fill_(value)
    return self


def fill__Tensor(self, value):
    self.copy_(value if value.is_complex() else value.nan_to_num(0).trunc())
    return self
