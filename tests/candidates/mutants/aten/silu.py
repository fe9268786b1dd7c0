import torch


def silu(self):
    return _answer(self)


def _answer(self):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x).to(dtype).contiguous()


# breaks: It is x exp(x) / (1 + exp(x)) in float32, NaN where the exponential overflows.
def exp_overflows(x):
    if x.is_complex():
        return x / (1 + torch.exp(-x))
    e = torch.exp(x.to(torch.float32)).to(torch.float64)
    return x * (e / (1 + e))


# breaks: It is x sigmoid(1.702 x), an approximation of GELU.
def gelu(x):
    return x / (1 + torch.exp(-1.702 * x))


# breaks: It takes sigmoid(x) as 1 - sigmoid(-x) in float32, which cancels.
def one_minus_sigmoid(x):
    if x.is_complex():
        return x / (1 + torch.exp(-x))
    return x * (1 - torch.sigmoid(-x.to(torch.float32)).to(torch.float64))
