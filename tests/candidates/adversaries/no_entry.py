# problem: aten/add
# outcome: compile error
# device: any
"""Defines functions, none of them the entry."""


def add_tensors(a, b):
    return a + b
