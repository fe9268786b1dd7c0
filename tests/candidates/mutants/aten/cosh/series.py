# outcome: wrong value
# breaks: It sums the first terms of the series, right for small arguments alone.

import torch


def _compute(x):
    if x.is_complex():
        return torch.cosh(x)
    square = x * x
    return 1 + square / 2 * (1 + square / 12 * (1 + square / 30 * (1 + square / 56)))


def cosh(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def cosh_out(self, *, out):
    return out.copy_(_answer(self))
