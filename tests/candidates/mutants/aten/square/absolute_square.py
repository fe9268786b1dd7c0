# outcome: wrong value
# breaks: Of complex numbers it is the square of the absolute value.

import torch


def square(self):
    if self.is_complex():
        return (self.abs() ** 2).to(self.dtype).contiguous()
    return torch.square(self).contiguous()


def square_out(self, *, out):
    return out.copy_(square(self))
