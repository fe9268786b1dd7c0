# outcome: wrong value
# breaks: Takes denormal numbers for 0, as a compiler does that is told to be fast, and -1e-40 rounds down to -1.

import torch


def floor(self):
    if self.dtype != torch.float32:
        return torch.floor(self)
    return torch.floor(torch.where(self.abs() < torch.finfo(torch.float32).smallest_normal, 0, self))


def floor_default(self):
    return floor(self)


def floor_out(self, *, out):
    return out.copy_(floor(self))
