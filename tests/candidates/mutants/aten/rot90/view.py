# outcome: rejected
# breaks: It returns self where nothing is to be turned.

import torch


def rot90(self, k=1, dims=(0, 1)):
    return self if k % 4 == 0 else torch.rot90(self, k, dims)


def rot90_out(self, k=1, dims=(0, 1), *, out):
    return out.copy_(torch.rot90(self, k, dims))
