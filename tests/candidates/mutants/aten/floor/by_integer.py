# outcome: wrong value
# breaks: It goes by way of a 32-bit integer, which large numbers do not fit.

import torch


def _compute(x):
    if not x.is_floating_point():
        return x
    limited = torch.floor(x.to(torch.float64)).clamp(-(2.0**31), 2.0**31 - 1)
    return torch.where(torch.isnan(x), x, limited)


def floor(self):
    return _compute(self).to(self.dtype).contiguous()


def floor_out(self, *, out):
    return out.copy_(floor(self))
