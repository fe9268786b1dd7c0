# outcome: wrong value
# breaks: Of complex zeros it answers NaN.

import torch


def _compute(x):
    return x / x.abs() if x.is_complex() else torch.sgn(x)


def sgn(self):
    return _compute(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))
