# outcome: wrong value
# breaks: Of complex numbers it takes the signs of the parts.

import torch


def _compute(x):
    return torch.complex(torch.sign(x.real), torch.sign(x.imag)) if x.is_complex() else torch.sgn(x)


def sgn(self):
    return _compute(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))
