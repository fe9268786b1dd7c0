# outcome: wrong value
# breaks: It rounds A to float16.

import torch


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).half().double()
    if beta:
        result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.copy_(result)
