# outcome: input changed
# breaks: It subtracts the maximum in its input.

import torch


def softmax_int(self, dim, dtype=None):
    if self.numel():
        self.sub_(1.0)
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
