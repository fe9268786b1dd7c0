import torch


def log10(self):
    return _answer(self)


def log10_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: Of complex numbers it takes the logarithm of the absolute value.
def absolute_value(x):
    return torch.log10(x.abs() if x.is_complex() else x).to(x.dtype)


# breaks: It takes denormal numbers for zero.
def flushes_denormals(x):
    return torch.log10(x if x.is_complex() else torch.where(x.abs() < 1.17549435e-38, 0.0, x))


# breaks: It adds 1e-8 before the logarithm.
def guards_zero(x):
    return torch.log10(x if x.is_complex() else x + 1e-8)


# breaks: Of complex numbers it squares the parts in float32, which overflow or vanish.
def modulus_in_float32(x):
    if not x.is_complex():
        return torch.log10(x)
    re, im = x.real.float(), x.imag.float()
    return torch.complex(torch.log10((re * re + im * im).double()) / 2, torch.log10(x).imag)


# breaks: It is the logarithm to base e.
def natural(x):
    return torch.log(x)
