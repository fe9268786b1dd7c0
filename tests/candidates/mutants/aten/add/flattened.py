# outcome: wrong shape
# breaks: It answers in one dimension.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).reshape(-1)


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).reshape(-1)
