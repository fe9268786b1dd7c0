# outcome: wrong shape
# breaks: Its copies are row-major always.

import torch


def clone(self, *, memory_format=None):
    return torch.empty(self.shape, dtype=self.dtype, device=self.device).copy_(self)
