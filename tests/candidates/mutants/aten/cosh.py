import torch


def cosh(self):
    return _answer(self)


def cosh_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It leaves exp(-x) out.
def half_exp(x):
    return torch.exp(x if x.is_complex() else x.abs()) / 2


# breaks: It sums the first terms of the series, right for small arguments alone.
def series(x):
    if x.is_complex():
        return torch.cosh(x)
    square = x * x
    return 1 + square / 2 * (1 + square / 12 * (1 + square / 30 * (1 + square / 56)))
