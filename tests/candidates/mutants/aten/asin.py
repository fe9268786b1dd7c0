import torch


def asin(self):
    return _answer(self)


def asin_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: Of complex numbers it takes the lower half of the plane for the upper one.
def forgets_the_lower_half(x):
    return torch.asin(torch.complex(x.real, x.imag.abs()) if x.is_complex() else x)


# breaks: It limits its argument to -1 and 1, so that there is no NaN.
def limits_argument(x):
    return torch.asin(x) if x.is_complex() else torch.asin(x.clamp(-1, 1))


# breaks: Its polynomial is right to four digits.
def short_polynomial(x):
    if x.is_complex():
        return torch.asin(x)
    a = x.abs()
    poly = 1.5707288 + a * (-0.2121144 + a * (0.0742610 - 0.0187293 * a))
    return torch.sign(x) * (torch.pi / 2 - torch.sqrt(1 - a) * poly)
