def _solve(a, b, lower, unit):
    """a x = b for a triangle given as a view; b is overwritten."""
    n = a.shape[0]
    for step in range(n):
        i = step if lower else n - 1 - step
        if not unit:
            b[i] /= a[i, i]
        rest = slice(i + 1, n) if lower else slice(0, i)
        b[rest] -= a[rest, i, None] * b[i][None, :]


# breaks: The right-hand sides are scaled by alpha for side 'L' but not for 'R'.
def alpha_on_the_left_only(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a = A.as_strided((order, order), (1, lda))
    b = B.as_strided((m, n), (1, ldb))
    lower = uplo == "L"
    if alpha == 0:
        b.zero_()
        return
    if trans != "N":
        a, lower = a.T, not lower
    if side == "L":
        b *= alpha
        _solve(a, b, lower, diag == "U")
    else:
        _solve(a.T, b.T, not lower, diag == "U")


# breaks: For side 'L', where A and B have as many rows, columns of B are taken to lie lda apart.
# outcome: input changed
def distance_of_a_for_b(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
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


# breaks: Blocks of 64 unknowns are solved one after the other, of a transposed triangle without what is known by then.
def rest_of_blocks_never_updated(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a, b = A.as_strided((order, order), (1, lda)), B.as_strided((m, n), (1, ldb))
    b.copy_(alpha * b if alpha else 0 * b)
    if alpha == 0:
        return
    lower = uplo == "L"
    if trans != "N":
        a, lower = a.T, not lower
    if side == "R":
        a, b, lower = a.T, b.T, not lower
    firsts = list(range(0, order, 64))
    for first in firsts if lower else reversed(firsts):
        here = slice(first, min(first + 64, order))
        _solve(a[here, here], b[here], lower, diag == "U")
        rest = slice(here.stop, order) if lower else slice(0, first)
        if trans == "N":
            b[rest] -= a[rest, here] @ b[here]
