# outcome: wrong value
# breaks: It adds in the input's own dtype and converts the sums.

import torch


def cumsum(self, dim, *, dtype=None):
    if dtype is None:
        return torch.cumsum(self, dim)
    own = torch.cumsum(self, dim, dtype=self.dtype if self.dtype != torch.bool else torch.int64)
    return own.to(dtype)
