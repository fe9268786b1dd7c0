# outcome: wrong value
# breaks: It rounds towards zero.

import torch


def _compute(x):
    return torch.trunc(x)


def floor(self):
    return _compute(self).to(self.dtype).contiguous()


def floor_out(self, *, out):
    return out.copy_(floor(self))
