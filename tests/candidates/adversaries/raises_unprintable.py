# problem: aten/add
# outcome: runtime error
# device: any
"""Raises an error that fails to show itself."""


class Unprintable(Exception):
    def __str__(self):
        raise Unprintable

    __repr__ = __str__


def add_Tensor(self, other, *, alpha=1):
    raise Unprintable


def add_Scalar(self, other, alpha=1):
    raise Unprintable
