import torch


# breaks: It rounds to the nearest whole number.
def rounds_to_nearest(self, src, non_blocking=False):
    whole = not (self.is_floating_point() or self.is_complex())
    return self.copy_(src.round() if whole and src.is_floating_point() else src)


# breaks: It takes the largest finite number for what is beyond a type's range.
def saturates(self, src, non_blocking=False):
    if self.is_floating_point() and src.is_floating_point():
        most = torch.finfo(self.dtype).max
        return self.copy_(src.clamp(-most, most))
    return self.copy_(src)


# breaks: A complex number is True where its real part is not 0.
def real_part_alone(self, src, non_blocking=False):
    return self.copy_(src.real if self.dtype == torch.bool and src.is_complex() else src)
