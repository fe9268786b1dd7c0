# outcome: wrong value
# breaks: It goes by way of float32 for integers too.

import torch


def _compute(x):
    if x.dtype == torch.int64:
        return torch.floor(x.to(torch.float32)).clamp(-9e18, 9e18)
    return torch.floor(x)


def floor(self):
    return _compute(self).to(self.dtype).contiguous()


def floor_out(self, *, out):
    return out.copy_(floor(self))
