# outcome: wrong value
# breaks: It negates integers by way of float32.

import torch


def _compute(x):
    return -x.to(torch.float32).clamp(-9e18, 9e18) if x.dtype == torch.int64 else -x


def neg(self):
    return _compute(self).to(self.dtype).contiguous()
