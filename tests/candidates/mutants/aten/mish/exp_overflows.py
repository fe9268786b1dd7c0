# outcome: wrong value
# breaks: It squares 1 + exp(x) in float32, which overflows for large arguments.

import torch


def _compute(x):
    e = torch.exp(x.to(torch.float32))
    square = ((1 + e) * (1 + e)).to(torch.float64)
    return torch.where(torch.isinf(square), torch.full_like(x, torch.nan), x * torch.tanh(torch.log1p(torch.exp(x))))


def mish(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def mish_out(self, *, out):
    return out.copy_(_answer(self))
