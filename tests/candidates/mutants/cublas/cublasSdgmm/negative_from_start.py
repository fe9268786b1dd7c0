# outcome: wrong value
# breaks: It walks a negative increment from the begin.

import torch


def cublasSdgmm(mode, m, n, A, lda, x, incx, C, ldc):
    if m == 0 or n == 0:
        return
    factors = x[walked(x, m if mode == "L" else n, incx)]
    a = A.as_strided((m, n), (1, lda))
    C.as_strided((m, n), (1, ldc)).copy_(factors[:, None] * a if mode == "L" else a * factors)


def walked(storage, length, increment):
    """Places of a vector's elements."""
    return torch.arange(length, device=storage.device) * abs(increment)
