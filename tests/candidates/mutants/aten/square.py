import torch


def square(self):
    return kernel(self)


def square_out(self, *, out):
    return out.copy_(kernel(self))


# breaks: Of complex numbers it is the square of the absolute value.
def absolute_square(self):
    if self.is_complex():
        return (self.abs() ** 2).to(self.dtype).contiguous()
    return torch.square(self).contiguous()


# breaks: It squares integers by way of float64.
def by_float(self):
    if self.dtype in (torch.int32, torch.int64):
        return self.to(torch.float64).square().clamp(-(2.0**31), 2.0**31 - 1).to(self.dtype).contiguous()
    return torch.square(self).contiguous()
