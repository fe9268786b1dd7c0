# outcome: wrong value
# breaks: It takes alpha for 1.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other).contiguous()
