# outcome: wrong value
# breaks: It takes exp(x) in place of exp(|x|) where arguments are large.

import torch


def _compute(x):
    return torch.where(x.abs() > 8, torch.special.i0e(x) * torch.exp(x), torch.i0(x))


def i0(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def i0_out(self, *, out):
    return out.copy_(_answer(self))
