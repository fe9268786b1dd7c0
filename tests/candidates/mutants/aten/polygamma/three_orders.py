# outcome: wrong value
# breaks: It takes every order above 2 for 2.

import torch


def polygamma(n, self):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(dtype).to(torch.float64)
    return _polygamma(n, x).to(dtype).contiguous()


def polygamma_out(n, self, *, out):
    return out.copy_(polygamma(n, self))


def _polygamma(n, x):
    return torch.polygamma(min(n, 2), x)
