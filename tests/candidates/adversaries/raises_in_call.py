# problem: aten/add
# outcome: runtime error
# device: any
"""Raises an error whose message is large and cannot be encoded."""


def add_Tensor(self, other, *, alpha=1):
    raise RuntimeError("\udcff" * 1_000_000)


def add_Scalar(self, other, alpha=1):
    raise RuntimeError("\udcff" * 1_000_000)
