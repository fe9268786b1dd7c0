import torch


def mish(self):
    return _answer(self)


def mish_out(self, *, out):
    return out.copy_(_answer(self))


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It squares 1 + exp(x) in float32, which overflows for large arguments.
def exp_overflows(x):
    e = torch.exp(x.to(torch.float32))
    square = ((1 + e) * (1 + e)).to(torch.float64)
    return torch.where(torch.isinf(square), torch.full_like(x, torch.nan), x * torch.tanh(torch.log1p(torch.exp(x))))


# breaks: It takes log(1 + exp(x)) in float32, which is 0 for negative arguments.
def no_log1p(x):
    single = x.to(torch.float32)
    soft = torch.where(single > 20, single, torch.log(1 + torch.exp(single)))
    return x * torch.tanh(soft.to(torch.float64))


# breaks: It is x sigmoid(x).
def silu(x):
    return x * torch.sigmoid(x)
