# outcome: wrong value
# breaks: It is the function of order 1 plus 1.

import torch


def _compute(x):
    return 1 + torch.special.i1(x).abs()


def i0(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def i0_out(self, *, out):
    return out.copy_(_answer(self))
