# problem: aten/add
# outcome: runtime error | wrong value
# device: any
"""Imports the harness's own references and calls them."""

import torch


def add_Tensor(self, other, *, alpha=1):
    from kgbench.baselines.references import aten

    return aten.add(self, other, alpha=alpha).value


def add_Scalar(self, other, alpha=1):
    from kgbench.baselines.references import aten

    return aten.add(self, other, alpha=alpha).value
