# outcome: wrong value
# breaks: It forgets what is left of n after tiles of 32.

import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    products = vector(x, n, incx) * vector(y, n, incy)
    result.fill_(products[: n // 32 * 32].sum())
