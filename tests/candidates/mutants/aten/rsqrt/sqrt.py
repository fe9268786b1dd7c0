# outcome: wrong value
# breaks: It is the square root.

import torch


def _compute(x):
    return torch.sqrt(x)


def rsqrt(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
