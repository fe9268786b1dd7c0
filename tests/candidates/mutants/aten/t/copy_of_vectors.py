# outcome: wrong value
# breaks: It is a view for a matrix and a copy for a tensor with fewer dimensions.

import torch


def t(self):
    if self.ndim < 2:
        return self.clone()
    return torch.as_strided(self, self.shape[::-1], self.stride()[::-1])
