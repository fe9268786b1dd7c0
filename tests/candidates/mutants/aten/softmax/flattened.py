# outcome: wrong shape
# breaks: It answers in one dimension.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).reshape(-1)
