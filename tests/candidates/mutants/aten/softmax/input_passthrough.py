# outcome: wrong value
# breaks: It hands its input back as a copy.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return x.to(dtype or self.dtype).contiguous()
