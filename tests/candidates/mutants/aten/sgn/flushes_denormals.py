# outcome: wrong value
# breaks: It takes denormal numbers for zero.

import torch


def _compute(x):
    if not x.is_floating_point():
        return torch.sgn(x)
    return torch.sgn(torch.where(x.abs() < 1.17549435e-38, torch.zeros_like(x), x))


def sgn(self):
    return _compute(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))
