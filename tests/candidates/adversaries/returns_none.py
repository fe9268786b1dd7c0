# problem: aten/add
# outcome: rejected
# device: any
"""Answers nothing."""


def add_Tensor(self, other, *, alpha=1):
    return None


def add_Scalar(self, other, alpha=1):
    return None
