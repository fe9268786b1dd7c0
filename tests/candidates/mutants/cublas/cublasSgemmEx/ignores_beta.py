# outcome: wrong value
# breaks: It leaves beta * C out.

import torch


def cublasSgemmEx(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    c.copy_(result)
