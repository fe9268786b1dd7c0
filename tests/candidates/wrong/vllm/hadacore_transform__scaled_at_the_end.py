# outcome: wrong value
# breaks: Sums are formed in x's dtype and scaled when all are done, where those of float16 may have overflowed.

import torch


def hadacore_transform(x, inplace=True):
    n = x.shape[-1]
    y, half = x, 1
    while half < n:
        a, b = y.unflatten(-1, (-1, 2, half)).unbind(-2)
        y = torch.stack((a + b, a - b), -2).reshape(x.shape)
        half *= 2
    return x.copy_(y.float() / n**0.5)
