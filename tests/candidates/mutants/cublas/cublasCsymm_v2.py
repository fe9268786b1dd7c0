# breaks: It conjugates the triangle that is not stored, as chemm does.
def hermitian(side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a, b = A.as_strided((order, order), (1, lda)), B.as_strided((m, n), (1, ldb))
    full = a.tril() + a.tril(-1).mH if uplo == "L" else a.triu() + a.triu(1).mH
    c = C.as_strided((m, n), (1, ldc))
    product = alpha * (full @ b if side == "L" else b @ full) if alpha else 0
    c.copy_(product + (beta * c if beta else c.new_zeros(c.shape)))
