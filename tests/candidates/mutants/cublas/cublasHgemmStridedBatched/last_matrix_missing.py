# outcome: wrong value
# breaks: It leaves out the last matrix of a batch of several.

import torch


def cublasHgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0 or batchCount == 0:
        return
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    last = max(1, batchCount - 1)
    c[:last] = result[:last].half()
