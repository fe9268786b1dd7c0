import torch


# breaks: It writes zeros into the rows below C.
# outcome: input changed
def fills_padding(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m == 0 or n == 0 or batchCount == 0:
        return
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    if ldc > m:
        C[m] = 0
    c.copy_(result)


# breaks: It rounds A and B to float8.
def float8_operands(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0 or batchCount == 0:
        return
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (rounded(a) @ rounded(b)) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


def rounded(x):
    return x.to(torch.float8_e4m3fn).double()


# breaks: It leaves beta * C out.
def ignores_beta(transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount):
    if m == 0 or n == 0 or batchCount == 0:
        return
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    c.copy_(result)


# breaks: It leaves out the last matrix of a batch of several.
def last_matrix_missing(
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


# breaks: It multiplies C by a beta of 0, NaN included.
def reads_c_for_beta_zero(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0 or batchCount == 0:
        return
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    result = result + beta * c.double()
    c.copy_(result)


# breaks: It takes the matrices of a batch to lie one right behind the other.
# outcome: wrong value | input changed
def strides_without_gaps(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0 or batchCount == 0:
        return
    strideA = lda * max(1, k if transa == "N" else m)
    strideC = ldc * n
    a = A.as_strided((batchCount, m, k), (strideA, 1, lda) if transa == "N" else (strideA, lda, 1))
    b = B.as_strided((batchCount, k, n), (strideB, 1, ldb) if transb == "N" else (strideB, ldb, 1))
    c = C.as_strided((batchCount, m, n), (strideC, 1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)
