# outcome: wrong value
# breaks: It begins a new sum after every 1024 elements.

import torch


def cumsum(self, dim, *, dtype=None):
    if self.dim() == 0 or self.shape[dim] <= 1024:
        return torch.cumsum(self, dim, dtype=dtype)
    return torch.cat([torch.cumsum(part, dim, dtype=dtype) for part in self.split(1024, dim)], dim)
