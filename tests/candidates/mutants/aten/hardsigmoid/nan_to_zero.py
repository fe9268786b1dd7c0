# outcome: wrong value
# breaks: Its limits take NaN for the lower one.

import torch


def _compute(x):
    return torch.nan_to_num((x + 3).clamp(0, 6) / 6, nan=0.0)


def hardsigmoid(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def hardsigmoid_out(self, *, out):
    return out.copy_(_answer(self))
