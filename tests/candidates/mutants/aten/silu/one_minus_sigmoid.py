# outcome: wrong value
# breaks: It takes sigmoid(x) as 1 - sigmoid(-x) in float32, which cancels.

import torch


def _compute(x):
    if x.is_complex():
        return x / (1 + torch.exp(-x))
    return x * (1 - torch.sigmoid(-x.to(torch.float32)).to(torch.float64))


def silu(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
