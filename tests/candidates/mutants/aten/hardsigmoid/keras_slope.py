# outcome: wrong value
# breaks: It is clamp(0.2 x + 0.5, 0, 1), the hard sigmoid of others.

import torch


def _compute(x):
    return torch.where(torch.isnan(x), x, (0.2 * x + 0.5).clamp(0, 1))


def hardsigmoid(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def hardsigmoid_out(self, *, out):
    return out.copy_(_answer(self))
