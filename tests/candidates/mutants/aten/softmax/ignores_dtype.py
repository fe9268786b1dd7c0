# outcome: wrong dtype
# breaks: It ignores the argument dtype.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(self.dtype).contiguous()
