# outcome: wrong value
# breaks: It answers zeros whatever it is given.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).zero_().contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).zero_().contiguous()
