# outcome: wrong value
# breaks: Of complex numbers it takes the logarithm of the absolute value.

import torch


def _compute(x):
    return torch.log10(x.abs() if x.is_complex() else x).to(x.dtype)


def log10(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def log10_out(self, *, out):
    return out.copy_(_answer(self))
