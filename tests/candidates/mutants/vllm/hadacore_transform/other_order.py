# outcome: wrong value
# breaks: It puts sums and differences side by side, which gives another order of rows.

import torch


def hadacore_transform(x, inplace=True):
    y = x.double()
    size, half = x.shape[-1], 1
    while half < size:
        a, b = y.reshape(*x.shape[:-1], -1, 2, half).unbind(-2)
        y = torch.stack((a + b, a - b), -1)
        half *= 2
    y = y.reshape(x.shape) / size**0.5
    return x.copy_(y)
