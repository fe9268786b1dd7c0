import torch


def special_entr(self):
    return _answer(self)


def special_entr_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It adds 1e-8 before the logarithm.
def guards_zero(x):
    return torch.where(x < 0, -torch.inf, -x * torch.log(x + 1e-8))


# breaks: It answers NaN for zero.
def nan_at_zero(x):
    return torch.where(x < 0, -torch.inf, -x * torch.log(x))


# breaks: It answers NaN below zero.
def nan_below_zero(x):
    return torch.where(x == 0, 0.0, -x * torch.log(x))


# breaks: It is x log(x).
def positive(x):
    return torch.where(x < 0, -torch.inf, -torch.special.entr(x))
