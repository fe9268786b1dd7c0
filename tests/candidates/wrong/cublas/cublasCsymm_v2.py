import torch


# breaks: For side 'L', where A and B have as many rows, columns of B are taken to lie lda apart.
def distance_of_a_for_b(side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc):
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


def _full(A, size, lda, lower):
    a = torch.zeros((size, size), dtype=A.dtype, device=A.device)
    for j in range(size):
        rows = slice(j, size) if lower else slice(0, j + 1)
        column = A[j * lda : j * lda + size][rows]
        a[rows, j] = column
        a[j, rows] = column
    return a


def _product(left, right):
    out = torch.zeros((left.shape[0], right.shape[1]), dtype=left.dtype, device=left.device)
    for p in range(left.shape[1]):
        out += left[:, p, None] * right[None, p, :]
    return out


# breaks: For side 'R' it works on the transposed problem and forgets that A's triangle is not transposed with it.
def right_side_takes_other_triangle(side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    b = B.as_strided((m, n), (1, ldb))
    c = C.as_strided((m, n), (1, ldc))
    if side == "L":
        product = _product(_full(A, m, lda, uplo == "L"), b)
    else:
        product = _product(_full(A, n, lda, uplo == "U"), b.T).T
    product = alpha * product
    c.copy_(product if beta == 0 else product + beta * c)
