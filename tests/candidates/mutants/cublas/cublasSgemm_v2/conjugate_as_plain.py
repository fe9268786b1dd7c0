# outcome: wrong value
# breaks: It takes the flag 'C' for 'N', reading the storage in a circle where it is too short.

import torch


def cublasSgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda)) if transa == "N" else A.as_strided((m, k), (lda, 1))
    b = B.as_strided((k, n), (1, ldb)) if transb == "N" else B.as_strided((k, n), (ldb, 1))
    if transa == "C":
        i, j = torch.arange(m, device=A.device)[:, None], torch.arange(k, device=A.device)
        a = A[(i + j * lda) % max(1, A.numel())]
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)
