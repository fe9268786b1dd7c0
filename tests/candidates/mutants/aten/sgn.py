import torch


def sgn(self):
    return kernel(self).to(self.dtype).contiguous()


def sgn_out(self, *, out):
    return out.copy_(sgn(self))


# breaks: Of complex zeros it answers NaN.
def divides_by_zero(x):
    return x / x.abs() if x.is_complex() else torch.sgn(x)


# breaks: It takes denormal numbers for zero.
def flushes_denormals(x):
    if not x.is_floating_point():
        return torch.sgn(x)
    return torch.sgn(torch.where(x.abs() < 1.17549435e-38, torch.zeros_like(x), x))


# breaks: Of complex numbers it squares the parts in float32, which overflow or vanish.
def modulus_in_float32(x):
    if x.dtype != torch.complex64:
        return torch.sgn(x)
    size = (x.real * x.real + x.imag * x.imag).sqrt()
    return torch.where(x == 0, torch.zeros_like(x), x / size)


# breaks: It answers NaN for NaN.
def nan_stays(x):
    return torch.where(torch.isnan(x), x, torch.sgn(x))


# breaks: It answers 1 for zero.
def one_at_zero(x):
    return torch.where(x == 0, torch.ones_like(x), torch.sgn(x))


# breaks: Of complex numbers it takes the signs of the parts.
def parts_of_complex(x):
    return torch.complex(torch.sign(x.real), torch.sign(x.imag)) if x.is_complex() else torch.sgn(x)
