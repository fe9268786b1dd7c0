# outcome: wrong value
# breaks: It answers 1 for zero.

import torch


def _compute(x):
    return torch.where(x == 0, torch.ones_like(x), torch.sgn(x))


def sgn(self):
    return _compute(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))
