# outcome: wrong value
# breaks: It limits its argument to -1 and 1, so that there is no NaN.

import torch


def _compute(x):
    return torch.asin(x) if x.is_complex() else torch.asin(x.clamp(-1, 1))


def asin(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def asin_out(self, *, out):
    return out.copy_(_answer(self))
