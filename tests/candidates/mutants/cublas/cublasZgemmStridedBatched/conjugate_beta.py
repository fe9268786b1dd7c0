# outcome: wrong value
# breaks: It multiplies C by the conjugate of beta.


def cublasZgemmStridedBatched(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0:
        return
    for p in range(batchCount):
        a = op(A[p * strideA :], transa, m, k, lda)
        b = op(B[p * strideB :], transb, k, n, ldb)
        c = C[p * strideC :].as_strided((m, n), (1, ldc))
        product = alpha * (a @ b) if alpha and k else 0
        c.copy_(product + (beta.conjugate() * c if beta else c.new_zeros(c.shape)))


def op(storage, flag, rows, columns, ld):
    x = storage.as_strided((rows, columns), (1, ld) if flag == "N" else (ld, 1))
    return x.conj() if flag == "C" else x
