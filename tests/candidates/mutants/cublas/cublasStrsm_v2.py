import torch


def triangle(a, uplo):
    return a.tril() if uplo == "L" else a.triu()


def solved(a, right, upper, left):
    return torch.linalg.solve_triangular(a, right, upper=upper, left=left)


def unchanged(a):
    return a


def solve(
    side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb,
    *, rounded=unchanged, triangle=triangle, kept=unchanged, solved=solved,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    if m == 0 or n == 0:
        return
    order = m if side == "L" else n
    a = triangle(rounded(A.as_strided((order, order), (1, lda))).double(), uplo)
    if diag == "U":
        a.fill_diagonal_(1.0)
    a, lower = kept(a), uplo == "L"
    if trans != "N":
        a, lower = a.t(), not lower
    b = B.as_strided((m, n), (1, ldb))
    right = alpha * b.double() if alpha else torch.zeros_like(b).double()
    b.copy_(solved(a, right, upper=not lower, left=side == "L"))


def tf32_of(x):
    """float32 with the ten bits of mantissa that TF32 keeps."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


# breaks: It takes the diagonal for 1 whatever diag says.
def always_unit_diagonal(side, uplo, trans, diag, *rest):
    solve(side, uplo, trans, "U", *rest)


# breaks: It clears the triangle of A that does not count.
# outcome: input changed
def cleans_a(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb):
    if m and n:
        order = m if side == "L" else n
        stored = A.as_strided((order, order), (1, lda))
        stored.copy_(triangle(stored, uplo))
    solve(side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb)


# breaks: It takes the flag 'C' for 'N'.
def conjugate_not_transposed(side, uplo, trans, *rest):
    solve(side, uplo, "N" if trans == "C" else trans, *rest)


# breaks: It divides by the diagonal only.
def diagonal_only(*given):
    solve(*given, kept=lambda a: a.diagonal().diag())


# breaks: It takes alpha for 1.
def ignores_alpha(side, uplo, trans, diag, m, n, alpha, *rest):
    solve(side, uplo, trans, diag, m, n, 1.0, *rest)


# breaks: It never transposes A.
def ignores_trans(side, uplo, trans, *rest):
    solve(side, uplo, "N", *rest)


# breaks: It uses the triangle that uplo does not name.
def other_triangle(side, uplo, *rest):
    solve(side, "U" if uplo == "L" else "L", *rest)


# breaks: It reads the diagonal although diag says that it is 1.
def reads_unit_diagonal(side, uplo, trans, diag, *rest):
    solve(side, uplo, trans, "N", *rest)


# breaks: It answers alpha * B and solves nothing.
def scales_only(*given):
    solve(*given, solved=lambda a, right, upper, left: right)


# breaks: It rounds A to the ten bits of TF32.
def tf32(*given):
    solve(*given, rounded=tf32_of)


# breaks: It solves with both triangles.
def whole_matrix(*given):
    def solved(a, right, upper, left):
        inverse = torch.linalg.inv_ex(a)[0]
        return inverse @ right if left else right @ inverse

    solve(*given, triangle=lambda a, uplo: a, solved=solved)
