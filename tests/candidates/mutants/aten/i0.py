import torch


def i0(self):
    return _answer(self)


def i0_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It is the function of order 1 plus 1.
def first_order(x):
    return 1 + torch.special.i1(x).abs()


# breaks: It takes exp(x) in place of exp(|x|) where arguments are large.
def positive_only(x):
    return torch.where(x.abs() > 8, torch.special.i0e(x) * torch.exp(x), torch.i0(x))


# breaks: It sums 25 terms of the power series, too few for large arguments.
def series_only(x):
    quarter, total = x * x / 4, torch.ones_like(x)
    term = torch.ones_like(x)
    for k in range(1, 26):
        term = term * quarter / (k * k)
        total = total + term
    return total
