# outcome: wrong value
# breaks: It scales the first operand.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(other, self, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
