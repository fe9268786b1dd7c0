# outcome: wrong value
# breaks: It takes the first weight for all channels.

import torch


def prelu(self, weight):
    x = self
    return torch.where(x > 0, x, weight.reshape(-1)[:1].reshape([]) * x).contiguous()
