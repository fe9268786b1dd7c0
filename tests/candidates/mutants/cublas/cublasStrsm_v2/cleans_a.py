# outcome: input changed
# breaks: It clears the triangle of A that does not count.

import torch


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    stored = A.as_strided((order, order), (1, lda))
    stored.copy_(stored.tril() if uplo == "L" else stored.triu())
    a = stored.double()
    a = a.tril() if uplo == "L" else a.triu()
    if diag == "U":
        a.fill_diagonal_(1.0)
    lower = uplo == "L"
    if trans != "N":
        a, lower = a.t(), not lower
    b = B.as_strided((m, n), (1, ldb))
    right = alpha * b.double() if alpha else torch.zeros_like(b).double()
    b.copy_(torch.linalg.solve_triangular(a, right, upper=not lower, left=side == "L"))
