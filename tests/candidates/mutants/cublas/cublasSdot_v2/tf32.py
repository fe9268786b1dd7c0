# outcome: wrong value
# breaks: It rounds x and y to the ten bits of TF32.

import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return rounded(storage[first + inc * torch.arange(n, device=storage.device)]).double()


def cublasSdot_v2(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum())


def rounded(x):
    """float32 with the ten bits of mantissa that TF32 keeps."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
