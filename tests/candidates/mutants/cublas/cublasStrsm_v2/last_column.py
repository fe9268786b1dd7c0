# outcome: wrong value
# breaks: It leaves the last column of B unsolved.

import torch


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a = A.as_strided((order, order), (1, lda)).double()
    a = a.tril() if uplo == "L" else a.triu()
    if diag == "U":
        a.fill_diagonal_(1.0)
    lower = uplo == "L"
    if trans != "N":
        a, lower = a.t(), not lower
    b = B.as_strided((m, n), (1, ldb))
    right = alpha * b.double() if alpha else torch.zeros_like(b).double()
    x = torch.linalg.solve_triangular(a, right, upper=not lower, left=side == "L")
    b[:, :-1] = x[:, :-1]
