# outcome: wrong value
# breaks: It answers 0.

import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    result.zero_()
