# outcome: wrong value
# breaks: It turns from the lower dimension towards the higher always.

import torch


def rot90(self, k=1, dims=(0, 1)):
    return torch.rot90(self, k, sorted(dim % self.dim() for dim in dims))


def rot90_out(self, k=1, dims=(0, 1), *, out):
    return out.copy_(torch.rot90(self, k, sorted(dim % self.dim() for dim in dims)))
