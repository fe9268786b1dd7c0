# outcome: wrong value
# breaks: Takes denormal numbers for 0, as a compiler does that is told to be fast.

import torch


def argmax(self, dim=None, keepdim=False):
    if self.dtype == torch.float32:
        self = torch.where(self.abs() < torch.finfo(torch.float32).smallest_normal, 0, self)
    return torch.argmax(self, dim, keepdim)
