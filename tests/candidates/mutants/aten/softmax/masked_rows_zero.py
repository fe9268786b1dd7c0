# outcome: wrong value
# breaks: It gives zeros, not NaN, for a slice with nothing but -inf.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).nan_to_num(0.0).to(dtype or self.dtype).contiguous()
