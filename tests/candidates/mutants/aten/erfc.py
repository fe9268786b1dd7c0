import torch


def erfc(self):
    return _answer(self)


def erfc_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It takes 1 - erf(x) in float32, which cancels in the tail.
def one_minus_erf(x):
    return 1 - torch.erf(x.to(torch.float32)).to(torch.float64)


# breaks: Its approximation is right to seven digits in all, not of small results.
def short_polynomial(x):
    a = x.abs()
    t = 1 / (1 + 0.3275911 * a)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = poly * torch.exp(-a * a)
    return torch.where(x < 0, 2 - tail, tail)
