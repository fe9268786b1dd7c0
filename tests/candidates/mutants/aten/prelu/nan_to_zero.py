# outcome: wrong value
# breaks: It is max(x, 0) + weight min(x, 0) with limits that take NaN for 0.

import torch


def prelu(self, weight):
    x = self
    w = weight.reshape([-1] + [1] * (self.dim() - 2)) if weight.numel() > 1 else weight.reshape([])
    return torch.where(x > 0, x, torch.where(x <= 0, w * x, torch.zeros_like(x))).contiguous()
