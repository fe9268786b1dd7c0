# outcome: wrong value
# breaks: It is x exp(x) / (1 + exp(x)) in float32, NaN where the exponential overflows.

import torch


def _compute(x):
    if x.is_complex():
        return x / (1 + torch.exp(-x))
    e = torch.exp(x.to(torch.float32)).to(torch.float64)
    return x * (e / (1 + e))


def silu(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
