# outcome: wrong dtype
# breaks: It answers a float64 copy.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1]).double()
