import torch


def logit(self, eps=None):
    return _answer(self, eps)


def logit_out(self, eps=None, *, out):
    return out.copy_(_answer(self, eps))


def _answer(self, eps=None):
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.to(dtype).to(torch.complex128 if self.is_complex() else torch.float64)
    return kernel(x, eps).to(dtype).contiguous()


# breaks: It limits to [1e-6, 1 - 1e-6] where eps is None.
def always_limits(x, eps=None):
    return torch.logit(x, 1e-6 if eps is None else eps)


# breaks: It takes eps = 0 for None.
def eps_zero_is_none(x, eps=None):
    return torch.logit(x, eps or None)


# breaks: It takes eps for None.
def ignores_eps(x, eps=None):
    return torch.logit(x)


# breaks: It limits from below and not from above.
def limits_below_only(x, eps=None):
    return torch.logit(x if eps is None else torch.where(x < eps, eps, x))
