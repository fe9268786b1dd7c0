# outcome: wrong value
# breaks: alpha and beta are rounded to float32 on their way to the sums.

import torch


def _walked(storage, n, increment):
    vector = storage.as_strided((n,), (abs(increment),))
    return vector.flip(0) if increment < 0 else vector


def cublasDsbmv_v2(uplo, n, k, alpha, A, lda, x, incx, beta, y, incy):
    if n == 0:
        return
    alpha, beta = torch.tensor([alpha, beta], dtype=torch.float32).double().tolist()
    values, total = _walked(x, n, incx), torch.zeros(n, dtype=torch.float64, device=x.device)
    for distance in range(min(k, n - 1) + 1):
        # The diagonal at this distance: row k - distance of the band from its column on, or row distance.
        first = k - distance + distance * lda if uplo == "U" else distance
        diagonal = A[first:].as_strided((n - distance,), (lda,))
        total[distance:] += diagonal * values[: n - distance]
        if distance:
            total[: n - distance] += diagonal * values[distance:]
    total *= alpha
    if beta:
        total += beta * _walked(y, n, incy)
    y.as_strided((n,), (abs(incy),)).copy_(total.flip(0) if incy < 0 else total)
