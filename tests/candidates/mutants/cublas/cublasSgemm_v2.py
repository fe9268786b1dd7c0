import torch


def gemm(
    transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc,
    *, rounded=lambda x: x, reads=bool, stored=lambda result: result,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    if m == 0 or n == 0:
        return
    a = rounded(A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1)))
    b = rounded(B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1)))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if reads(beta):
        result = result + beta * c.double()
    c.copy_(stored(result))


def tf32_of(x):
    """float32 with the ten bits of mantissa that TF32 keeps."""
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


# breaks: It scales beta * C by alpha, too.
def alpha_scales_all(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    gemm(transa, transb, m, n, k, alpha, A, lda, B, ldb, alpha * beta, C, ldc)


# breaks: It takes the flag 'C' for 'N', reading the storage in a circle where it is too short.
def conjugate_as_plain(transa, transb, m, n, k, alpha, A, lda, *rest):
    if transa == "C" and m:
        i, j = torch.arange(m, device=A.device), torch.arange(k, device=A.device)[:, None]
        transa, A, lda = "N", A[(i + j * lda) % max(1, A.numel())].flatten(), m
    gemm(transa, transb, m, n, k, alpha, A, lda, *rest)


# breaks: It sums over the first half of k.
def first_half_of_depth(transa, transb, m, n, k, *rest):
    gemm(transa, transb, m, n, (k + 1) // 2, *rest)


# breaks: It rounds A and B to float16.
def float16_operands(*given):
    gemm(*given, rounded=lambda x: x.half())


# breaks: It takes beta for 0.
def ignores_beta(*given):
    gemm(*given, reads=lambda beta: False)


# breaks: It forgets what is left of k after tiles of 8.
def last_depth_tile(transa, transb, m, n, k, *rest):
    gemm(transa, transb, m, n, k // 8 * 8, *rest)


# breaks: It takes A's columns for adjacent, whatever lda is.
def lda_is_rows(transa, transb, m, n, k, alpha, A, lda, *rest):
    gemm(transa, transb, m, n, k, alpha, A, max(1, m if transa == "N" else k), *rest)


# breaks: It multiplies C by a beta of 0, so that NaN in C stays.
def reads_c_for_beta_zero(*given):
    gemm(*given, reads=lambda beta: True)


# breaks: It stores C row by row.
def row_major_result(*given):
    gemm(*given, stored=lambda result: result.reshape(result.shape[1], result.shape[0]).t())


# breaks: It multiplies A by alpha in place before the product.
# outcome: input changed
def scales_a(transa, transb, m, n, k, alpha, A, lda, *rest):
    if m and n and k:
        A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1)).mul_(alpha)
    gemm(transa, transb, m, n, k, 1.0 if alpha else 0.0, A, lda, *rest)


# breaks: It rounds A and B to the ten bits of TF32.
def tf32(*given):
    gemm(*given, rounded=tf32_of)
