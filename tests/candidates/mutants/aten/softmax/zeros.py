# outcome: wrong value
# breaks: It answers zeros whatever it is given.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return torch.zeros_like(e).to(dtype or self.dtype).contiguous()
