import torch


# breaks: It conjugates the second factor, as cherk does.
# device: cpu
def hermitian(uplo, trans, n, k, alpha, A, Atype, lda, beta, C, Ctype, ldc):
    if n == 0:
        return
    rows = A.as_strided((n, k), (1, lda) if trans == "N" else (lda, 1))
    c = C.as_strided((n, n), (1, ldc))
    result = alpha * (rows @ rows.mH) if alpha and k else torch.zeros_like(c)
    if beta:
        result = result + beta * c
    inside = torch.ones(n, n).tril().bool() if uplo == "L" else torch.ones(n, n).triu().bool()
    c.copy_(torch.where(inside, result, c))
