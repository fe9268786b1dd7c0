import torch


# breaks: Both factors are scaled by alpha, so that it counts twice.
def alpha_on_both_factors(uplo, trans, n, k, alpha, A, Atype, lda, beta, C, Ctype, ldc):
    if n == 0:
        return
    total = torch.zeros((n, n), dtype=torch.complex64, device=C.device)
    if k and alpha != 0:
        a = A.as_strided((n, k), (1, lda)) if trans == "N" else A.as_strided((n, k), (lda, 1))
        scaled = alpha * a
        for i in range(n):
            total[i] = (scaled[i][None, :] * scaled).sum(dim=1)
    for j in range(n):
        rows = slice(j, n) if uplo == "L" else slice(0, j + 1)
        column = C[j * ldc : j * ldc + n][rows]
        column.copy_(total[rows, j] if beta == 0 else total[rows, j] + beta * column)
