# outcome: wrong value
# breaks: It leaves each element out of its own sum.

import torch


def cumsum(self, dim, *, dtype=None):
    out = torch.cumsum(self, dim, dtype=dtype)
    return out - self.to(out.dtype)
