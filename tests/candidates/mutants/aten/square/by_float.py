# outcome: wrong value
# breaks: It squares integers by way of float64.

import torch


def square(self):
    if self.dtype in (torch.int32, torch.int64):
        return self.to(torch.float64).square().clamp(-(2.0**31), 2.0**31 - 1).to(self.dtype).contiguous()
    return torch.square(self).contiguous()


def square_out(self, *, out):
    return out.copy_(square(self))
