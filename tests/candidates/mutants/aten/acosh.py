import torch


def acosh(self):
    return _answer(self)


def acosh_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It squares in float32, which overflows for large arguments.
def square_overflows(x):
    if x.is_complex():
        return torch.acosh(x)
    single = x.to(torch.float32)
    return torch.where(torch.isinf(single * single), single * single, torch.acosh(x))


# breaks: Of complex numbers it takes the lower half of the plane for the upper one.
def forgets_the_lower_half(x):
    return torch.acosh(torch.complex(x.real, x.imag.abs()) if x.is_complex() else x)


# breaks: It limits its argument to 1 and more, so that there is no NaN.
def zero_below_one(x):
    return torch.acosh(x) if x.is_complex() else torch.acosh(torch.where(x < 1, 1.0, x))
