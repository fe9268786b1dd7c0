# outcome: wrong value
# breaks: It takes incy for 1.

import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, 1)).sum())
