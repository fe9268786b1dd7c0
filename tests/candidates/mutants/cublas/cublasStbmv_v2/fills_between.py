# outcome: input changed
# breaks: It writes zeros between the elements of x.

import torch


def cublasStbmv_v2(uplo, trans, diag, n, k, A, lda, x, incx):
    if n == 0:
        return
    band = A.as_strided((k + 1, n), (1, lda)).double()
    place = torch.arange(n, device=x.device) * incx + (abs(incx) * (n - 1) if incx < 0 else 0)
    old = x[place].double()
    new = torch.zeros_like(old)
    for step in range(min(k, n - 1) + 1):
        diagonal = band[k - step, step:] if uplo == "U" else band[step, : n - step]
        if step == 0 and diag == "U":
            diagonal = torch.ones_like(diagonal)
        if (uplo == "U") == (trans == "N"):
            new[: n - step] += diagonal * old[step:]
        else:
            new[step:] += diagonal * old[: n - step]
    x.zero_()
    x[place] = new.float()
