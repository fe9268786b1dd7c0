# outcome: wrong value
# breaks: It reads the diagonal although diag says that it is 1.

import torch


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a = A.as_strided((order, order), (1, lda)).double()
    a = a.tril() if uplo == "L" else a.triu()
    lower = uplo == "L"
    if trans != "N":
        a, lower = a.t(), not lower
    b = B.as_strided((m, n), (1, ldb))
    right = alpha * b.double() if alpha else torch.zeros_like(b).double()
    b.copy_(torch.linalg.solve_triangular(a, right, upper=not lower, left=side == "L"))
