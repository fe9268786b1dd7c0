# outcome: wrong value
# breaks: It rounds to the nearest whole number.


def copy_(self, src, non_blocking=False):
    whole = not (self.is_floating_point() or self.is_complex())
    return self.copy_(src.round() if whole and src.is_floating_point() else src)
