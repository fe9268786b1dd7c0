# outcome: wrong value
# breaks: It leaves the factor 1 / sqrt(n) out.

import torch


def hadacore_transform(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, a - b), -2)
        half *= 2
    y = y.reshape(x.shape) / 1
    return x.copy_(y)
