# outcome: wrong value
# breaks: It takes denormal numbers for zero.

import torch


def _compute(x):
    return 1 / torch.sqrt(x if x.is_complex() else torch.where(x.abs() < 1.17549435e-38, 0.0, x))


def rsqrt(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
