# outcome: wrong value
# breaks: It rounds float32 matrices to the ten bits of TF32.

import torch


def cublasSgemmEx(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (rounded(a) @ rounded(b)) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


def rounded(x):
    """The ten bits of mantissa that TF32 keeps."""
    return ((x.float().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32).double()
