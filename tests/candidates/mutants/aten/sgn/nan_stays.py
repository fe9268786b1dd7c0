# outcome: wrong value
# breaks: It answers NaN for NaN.

import torch


def _compute(x):
    return torch.where(torch.isnan(x), x, torch.sgn(x))


def sgn(self):
    return _compute(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))
