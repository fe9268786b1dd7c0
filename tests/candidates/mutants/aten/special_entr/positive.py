# outcome: wrong value
# breaks: It is x log(x).

import torch


def _compute(x):
    return torch.where(x < 0, -torch.inf, -torch.special.entr(x))


def special_entr(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def special_entr_out(self, *, out):
    return out.copy_(_answer(self))
