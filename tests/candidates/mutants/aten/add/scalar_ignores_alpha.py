# outcome: wrong value
# breaks: Its add_Scalar takes alpha for 1; add_Tensor is right.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other).contiguous()
