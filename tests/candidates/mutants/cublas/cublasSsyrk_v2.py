import torch


# breaks: It takes uplo for that of the transposed C.
# outcome: wrong value | input changed
# device: cpu
def other_triangle(uplo, trans, n, k, alpha, A, lda, beta, C, ldc):
    if n == 0:
        return
    rows = A.as_strided((n, k), (1, lda) if trans == "N" else (lda, 1))
    c = C.as_strided((n, n), (1, ldc))
    result = alpha * (rows @ rows.mT) if alpha and k else torch.zeros_like(c)
    if beta:
        result = result + beta * c
    inside = torch.ones(n, n).triu().bool() if uplo == "L" else torch.ones(n, n).tril().bool()
    c.copy_(torch.where(inside, result, c))
