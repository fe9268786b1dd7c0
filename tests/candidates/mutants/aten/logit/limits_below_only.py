# outcome: wrong value
# breaks: It limits from below and not from above.

import torch


def _compute(x, eps=None):
    return torch.logit(x if eps is None else torch.where(x < eps, eps, x))


def logit(self, eps=None):
    return _answer(self, eps)


def _answer(self, eps=None):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x, eps).to(dtype).contiguous()


def logit_out(self, eps=None, *, out):
    return out.copy_(_answer(self, eps))
