# outcome: wrong value
# breaks: It takes eps = 0 for None.

import torch


def _compute(x, eps=None):
    return torch.logit(x, eps or None)


def logit(self, eps=None):
    return _answer(self, eps)


def _answer(self, eps=None):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x, eps).to(dtype).contiguous()


def logit_out(self, eps=None, *, out):
    return out.copy_(_answer(self, eps))
