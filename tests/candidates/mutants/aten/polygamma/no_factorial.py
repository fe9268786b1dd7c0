# outcome: wrong value
# breaks: It leaves n! out.

import torch


def polygamma(n, self):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(dtype).to(torch.float64)
    return _polygamma(n, x).to(dtype).contiguous()


def polygamma_out(n, self, *, out):
    return out.copy_(polygamma(n, self))


def _polygamma(n, x):
    value = torch.polygamma(n, x)
    return value / torch.exp(torch.lgamma(torch.tensor(n + 1.0, dtype=torch.float64)))
