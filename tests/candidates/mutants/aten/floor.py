import torch


def floor(self):
    return kernel(self)


def floor_out(self, *, out):
    return out.copy_(kernel(self))


def _compute_by_integer(x):
    if not x.is_floating_point():
        return x
    limited = torch.floor(x.to(torch.float64)).clamp(-(2.0**31), 2.0**31 - 1)
    return torch.where(torch.isnan(x), x, limited)


# breaks: It goes by way of a 32-bit integer, which large numbers do not fit.
def by_integer(self):
    return _compute_by_integer(self).to(self.dtype).contiguous()


def _compute_integers_by_float(x):
    if x.dtype == torch.int64:
        return torch.floor(x.to(torch.float32)).clamp(-9e18, 9e18)
    return torch.floor(x)


# breaks: It goes by way of float32 for integers too.
def integers_by_float(self):
    return _compute_integers_by_float(self).to(self.dtype).contiguous()


def _compute_truncates(x):
    return torch.trunc(x)


# breaks: It rounds towards zero.
def truncates(self):
    return _compute_truncates(self).to(self.dtype).contiguous()
