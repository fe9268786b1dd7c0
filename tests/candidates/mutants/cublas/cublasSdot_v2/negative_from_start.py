# outcome: wrong value
# breaks: It takes a negative increment for its size, so that the vector is walked from its start.

import torch


def vector(storage, n, inc):
    inc, first = abs(inc), 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum())
