# outcome: wrong value
# breaks: It copies a contiguous matrix and views every other.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    if self.is_contiguous():
        return self.clone().t()
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1])
