# outcome: wrong value
# breaks: It squares in float32, which overflows for large arguments.

import torch


def _compute(x):
    if x.is_complex():
        return torch.acosh(x)
    single = x.to(torch.float32)
    return torch.where(torch.isinf(single * single), single * single, torch.acosh(x))


def acosh(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def acosh_out(self, *, out):
    return out.copy_(_answer(self))
