# outcome: wrong value
# breaks: Of complex numbers it changes the imaginary part alone.

import torch


def _compute(x):
    return torch.complex(x.real, -x.imag) if x.is_complex() else -x


def neg(self):
    return _compute(self).to(self.dtype).contiguous()
