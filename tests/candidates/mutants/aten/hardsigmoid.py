import torch


def hardsigmoid(self):
    return _answer(self)


def hardsigmoid_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It is clamp(0.2 x + 0.5, 0, 1), the hard sigmoid of others.
def keras_slope(x):
    return torch.where(torch.isnan(x), x, (0.2 * x + 0.5).clamp(0, 1))


# breaks: Its limits take NaN for the lower one.
def nan_to_zero(x):
    return torch.nan_to_num((x + 3).clamp(0, 6) / 6, nan=0.0)


# breaks: It has no upper end.
def never_saturates(x):
    return (x + 3).clamp_min(0) / 6
