# outcome: wrong value
# breaks: For side 'L', where A and B have as many rows, columns of B are taken to lie lda apart.


def cublasCsymm_v2(side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    order, apart = (m, lda) if side == "L" else (n, ldb)
    a = A.as_strided((order, order), (1, lda))
    half = a.tril(-1) if uplo == "L" else a.triu(1)
    a = half + half.T + a.diagonal().diag()
    b = B.as_strided((m, n), (1, apart))
    c = C.as_strided((m, n), (1, ldc))
    product = alpha * (a @ b if side == "L" else b @ a)
    c.copy_(product + beta * c if beta else product)
