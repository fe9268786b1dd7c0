# outcome: wrong value
# breaks: Of complex numbers it takes the sine of the parts.

import torch


def _compute(x):
    if x.is_complex():
        return torch.complex(torch.sin(x.real), torch.sin(x.imag))
    return torch.sin(x)


def sin(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return _compute(x).to(dtype).contiguous()
