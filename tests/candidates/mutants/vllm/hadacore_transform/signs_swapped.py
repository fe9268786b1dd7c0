# outcome: wrong value
# breaks: It subtracts the other way round.

import torch


def hadacore_transform(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, b - a), -2)
        half *= 2
    y = y.reshape(x.shape) / size**0.5
    return x.copy_(y)
