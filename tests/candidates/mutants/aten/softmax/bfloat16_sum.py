# outcome: wrong value
# breaks: It adds up in bfloat16.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.bfloat16().sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
