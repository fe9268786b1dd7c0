# outcome: wrong value
# breaks: It is a view that starts at the storage's beginning, not where the input starts.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1], 0)
