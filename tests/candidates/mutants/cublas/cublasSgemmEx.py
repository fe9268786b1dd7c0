import torch


# breaks: It multiplies float32 matrices in float16.
def float16_for_all(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.half().double() @ b.half().double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


# breaks: It leaves beta * C out.
def ignores_beta(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    c.copy_(result)


# breaks: It leaves out the last column of several.
def last_column_missing(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    last = max(1, n - 1)
    c[:, :last] = result[:, :last].to(c.dtype)


# breaks: It multiplies A by an alpha of 0, NaN included.
def reads_a_for_alpha_zero(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double())
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


# breaks: It rounds the product to the type of A and B before it is stored as float32.
def result_in_type_of_a(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (a.double() @ b.double()).to(Atype).double() if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


# breaks: It rounds float32 matrices to the ten bits of TF32.
def tf32(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, k), (1, lda) if transa == "N" else (lda, 1))
    b = B.as_strided((k, n), (1, ldb) if transb == "N" else (ldb, 1))
    c = C.as_strided((m, n), (1, ldc))
    result = alpha * (rounded(a) @ rounded(b)) if alpha else torch.zeros_like(c)
    if beta:
        result = result + beta * c.double()
    c.copy_(result)


def rounded(x):
    """The ten bits of mantissa that TF32 keeps."""
    return ((x.float().contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32).double()
