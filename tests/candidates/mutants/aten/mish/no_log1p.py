# outcome: wrong value
# breaks: It takes log(1 + exp(x)) in float32, which is 0 for negative arguments.

import torch


def _compute(x):
    single = x.to(torch.float32)
    soft = torch.where(single > 20, single, torch.log(1 + torch.exp(single)))
    return x * torch.tanh(soft.to(torch.float64))


def mish(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()


def mish_out(self, *, out):
    return out.copy_(_answer(self))
