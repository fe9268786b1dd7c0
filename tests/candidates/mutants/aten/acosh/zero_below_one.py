# outcome: wrong value
# breaks: It limits its argument to 1 and more, so that there is no NaN.

import torch


def _compute(x):
    return torch.acosh(x) if x.is_complex() else torch.acosh(torch.where(x < 1, 1.0, x))


def acosh(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def acosh_out(self, *, out):
    return out.copy_(_answer(self))
