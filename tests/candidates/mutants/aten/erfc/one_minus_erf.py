# outcome: wrong value
# breaks: It takes 1 - erf(x) in float32, which cancels in the tail.

import torch


def _compute(x):
    return 1 - torch.erf(x.to(torch.float32)).to(torch.float64)


def erfc(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def erfc_out(self, *, out):
    return out.copy_(_answer(self))
