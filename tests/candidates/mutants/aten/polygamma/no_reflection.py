# outcome: wrong value
# breaks: It answers NaN for every negative argument.

import torch


def polygamma(n, self):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(dtype).to(torch.float64)
    return _polygamma(n, x).to(dtype).contiguous()


def polygamma_out(n, self, *, out):
    return out.copy_(polygamma(n, self))


def _polygamma(n, x):
    return torch.where(x < 0, torch.nan, torch.polygamma(n, x))
