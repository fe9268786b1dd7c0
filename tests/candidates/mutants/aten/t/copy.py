# outcome: wrong value
# breaks: It copies: what is written to the input later does not show in the result.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1]).clone()
