# outcome: wrong value
# breaks: It takes the asymptotic series without recurrence, wrong for small arguments.

import torch


def polygamma(n, self):
    dtype = self.dtype if self.is_floating_point() else torch.float32
    x = self.to(dtype).to(torch.float64)
    return _polygamma(n, x).to(dtype).contiguous()


def polygamma_out(n, self, *, out):
    return out.copy_(polygamma(n, self))


def _polygamma(n, x):
    if n == 0:
        return torch.where(x > 0, torch.log(x) - 1 / (2 * x) - 1 / (12 * x * x), torch.digamma(x))
    if n == 1:
        return torch.where(x > 0, 1 / x + 1 / (2 * x * x) + 1 / (6 * x**3), torch.polygamma(1, x))
    return torch.polygamma(n, x)
