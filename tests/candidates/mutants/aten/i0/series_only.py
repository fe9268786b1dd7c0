# outcome: wrong value
# breaks: It sums 25 terms of the power series, too few for large arguments.

import torch


def _compute(x):
    quarter, total = x * x / 4, torch.ones_like(x)
    term = torch.ones_like(x)
    for k in range(1, 26):
        term = term * quarter / (k * k)
        total = total + term
    return total


def i0(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def i0_out(self, *, out):
    return out.copy_(_answer(self))
