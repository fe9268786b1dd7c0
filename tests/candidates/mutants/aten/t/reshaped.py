# outcome: wrong shape
# breaks: It is a view of the right shape and wrong strides over the elements in their old order.

import torch


def t(self):
    if self.ndim < 2:
        return self.view(self.shape)
    return torch.as_strided(self, self.shape[::-1], (self.shape[0], 1))
