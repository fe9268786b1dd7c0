# outcome: wrong value
# breaks: Its polynomial is right to four digits.

import torch


def _compute(x):
    if x.is_complex():
        return torch.asin(x)
    a = x.abs()
    poly = 1.5707288 + a * (-0.2121144 + a * (0.0742610 - 0.0187293 * a))
    return torch.sign(x) * (torch.pi / 2 - torch.sqrt(1 - a) * poly)


def asin(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def asin_out(self, *, out):
    return out.copy_(_answer(self))
