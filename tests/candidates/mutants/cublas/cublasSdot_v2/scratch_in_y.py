# outcome: input changed
# breaks: It forms the products in y.

import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    if incx == incy == 1:
        y[:n].mul_(x[:n])
        result.fill_(y[:n].double().sum())
        return
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum())
