# outcome: input changed
# breaks: For side 'L', where A and B have as many rows, columns of B are taken to lie lda apart.


def _solve(a, b, lower, unit):
    """a x = b for a triangle given as a view; b is overwritten."""
    n = a.shape[0]
    for step in range(n):
        i = step if lower else n - 1 - step
        if not unit:
            b[i] /= a[i, i]
        rest = slice(i + 1, n) if lower else slice(0, i)
        b[rest] -= a[rest, i, None] * b[i][None, :]


def cublasStrsm_v2(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order, apart = (m, lda) if side == "L" else (n, ldb)
    b = B.as_strided((m, n), (1, apart))
    if alpha == 0:
        b.zero_()
        return
    b *= alpha
    a, lower = A.as_strided((order, order), (1, lda)), uplo == "L"
    if trans != "N":
        a, lower = a.T, not lower
    if side == "L":
        _solve(a, b, lower, diag == "U")
    else:
        _solve(a.T, b.T, not lower, diag == "U")
