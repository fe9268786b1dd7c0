import torch


def rsqrt(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It takes the root of the absolute value, so that there is no NaN.
def absolute_value(x):
    return torch.rsqrt(x if x.is_complex() else x.abs())


# breaks: It takes denormal numbers for zero.
def flushes_denormals(x):
    return 1 / torch.sqrt(x if x.is_complex() else torch.where(x.abs() < 1.17549435e-38, 0.0, x))


# breaks: It adds 1e-8 before the root.
def guards_zero(x):
    return torch.rsqrt(x if x.is_complex() else x + 1e-8)


# breaks: Of complex numbers it squares the parts in float32, which overflow or vanish.
def modulus_in_float32(x):
    if not x.is_complex():
        return torch.rsqrt(x)
    re, im = x.real.float(), x.imag.float()
    return torch.rsqrt(x).conj().conj() * ((re * re + im * im).double().sqrt() / x.abs())


# breaks: It is the square root.
def sqrt(x):
    return torch.sqrt(x)
