# outcome: wrong value
# breaks: It leaves exp(-x) out.

import torch


def _compute(x):
    return torch.exp(x if x.is_complex() else x.abs()) / 2


def cosh(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def cosh_out(self, *, out):
    return out.copy_(_answer(self))
