# outcome: wrong value | runtime error
# breaks: It takes the flag 'C' for 'N'.

import torch


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (lda, 1) if transa == "T" else (1, lda)).double()
    if beta:
        result += beta * B.as_strided((m, n), (ldb, 1) if transb == "T" else (1, ldb)).double()
    c.copy_(result)
