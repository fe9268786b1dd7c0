# outcome: wrong value
# breaks: It leaves the last element of a slice out of the sum.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp(x - x.amax(dim, keepdim=True)) if x.numel() else x
    shorter = max(1, e.shape[dim] - 1) if e.ndim else 1
    return (
        (e / (e.narrow(dim, 0, shorter) if e.numel() and e.ndim else e).sum(dim, keepdim=True))
        .to(dtype or self.dtype)
        .contiguous()
    )
