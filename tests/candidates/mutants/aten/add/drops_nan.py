# outcome: wrong value
# breaks: It turns NaN into 0.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).nan_to_num(0.0).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).nan_to_num(0.0).contiguous()
