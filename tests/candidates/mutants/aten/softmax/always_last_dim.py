# outcome: wrong value
# breaks: It normalises along the last dimension whatever dim says.

import torch


def softmax_int(self, dim, dtype=None):
    dim = -1
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
