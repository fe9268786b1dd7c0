import torch


def op(storage, flag, rows, columns, ld, conjugated):
    x = storage.as_strided((rows, columns), (1, ld) if flag == "N" else (ld, 1))
    return x.conj() if flag in conjugated else x


def gemm(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount,
    *, conjugated="C", product=lambda a, b: a @ b, reads=bool,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    if m == 0 or n == 0:
        return
    for p in range(batchCount):
        a = op(A[p * strideA :], transa, m, k, lda, conjugated)
        b = op(B[p * strideB :], transb, k, n, ldb, conjugated)
        c = C[p * strideC :].as_strided((m, n), (1, ldc))
        scaled = alpha * product(a, b) if alpha and k else 0
        c.copy_(scaled + (beta * c if reads(beta) else c.new_zeros(c.shape)))


# breaks: It multiplies in complex64.
def complex64(*given):
    def product(a, b):
        return (a.to(torch.complex64) @ b.to(torch.complex64)).to(torch.complex128)

    gemm(*given, product=product)


# breaks: It multiplies C by the conjugate of beta.
def conjugate_beta(*given):
    gemm(*given[:12], given[12].conjugate(), *given[13:])


# breaks: It takes the flag 'T' for 'C'.
def conjugates_transpose(*given):
    gemm(*given, conjugated="CT")


# breaks: It multiplies every A by the first B.
def first_b_only(*given):
    gemm(*given[:11], 0, *given[12:])


# breaks: It forgets all of the batch but the first.
def first_matrix_only(*given):
    gemm(*given[:-1], min(1, given[-1]))


# breaks: It takes B's columns for adjacent, whatever ldb is.
def ldb_is_rows(transa, transb, m, n, k, *rest):
    gemm(transa, transb, m, n, k, *rest[:5], max(1, k if transb == "N" else n), *rest[6:])


# breaks: It takes the flag 'C' for 'T'.
def no_conjugate(*given):
    gemm(*given, conjugated="")


# breaks: It multiplies C by a beta of 0, so that NaN in C stays.
def reads_c_for_beta_zero(*given):
    gemm(*given, reads=lambda beta: True)


# breaks: It uses the real part of alpha only.
def real_alpha(transa, transb, m, n, k, alpha, *rest):
    gemm(transa, transb, m, n, k, alpha.real, *rest)


# breaks: It clears the gap after each but the last matrix.
# outcome: input changed
def writes_gap(transa, transb, m, n, *rest):
    gemm(transa, transb, m, n, *rest)
    C, ldc, strideC, batchCount = rest[-4:]
    for p in range(1, batchCount if m and n else 0):
        C[(p - 1) * strideC + ldc * n : p * strideC].zero_()


# breaks: It clears the padding between C's columns.
# outcome: input changed
def writes_padding(transa, transb, m, n, *rest):
    gemm(transa, transb, m, n, *rest)
    C, ldc, strideC, batchCount = rest[-4:]
    for p in range(batchCount if m and n else 0):
        C[p * strideC :].as_strided((ldc, n - 1), (1, ldc))[m:].zero_()
