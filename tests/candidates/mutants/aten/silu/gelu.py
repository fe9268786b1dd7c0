# outcome: wrong value
# breaks: It is x sigmoid(1.702 x), an approximation of GELU.

import torch


def _compute(x):
    return x / (1 + torch.exp(-1.702 * x))


def silu(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
