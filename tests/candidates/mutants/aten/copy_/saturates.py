# outcome: wrong value
# breaks: It takes the largest finite number for what is beyond a type's range.

import torch


def copy_(self, src, non_blocking=False):
    if self.is_floating_point() and src.is_floating_point():
        most = torch.finfo(self.dtype).max
        return self.copy_(src.clamp(-most, most))
    return self.copy_(src)
