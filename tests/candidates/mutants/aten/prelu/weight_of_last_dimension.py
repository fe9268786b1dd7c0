# outcome: wrong value
# breaks: It takes a weight per index of the last dimension where the number fits.

import torch


def prelu(self, weight):
    x = self
    if weight.numel() == 1:
        weight = weight.reshape([])
    elif self.shape[-1] != weight.numel():
        weight = weight.reshape([-1] + [1] * (self.dim() - 2))
    return torch.where(x > 0, x, weight * x).contiguous()
