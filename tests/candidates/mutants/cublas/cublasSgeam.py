import torch


# breaks: It adds to what C held.
def adds_to_c(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).double()
    if beta:
        result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.add_(result)


# breaks: It scales A by beta, too.
def beta_scales_all(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * (beta or 1) * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).double()
    if beta:
        result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.copy_(result)


# breaks: It takes the flag 'C' for 'N'.
# outcome: wrong value | runtime error
def conjugate_as_plain(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (lda, 1) if transa == "T" else (1, lda)).double()
    if beta:
        result += beta * B.as_strided((m, n), (ldb, 1) if transb == "T" else (1, ldb)).double()
    c.copy_(result)


# breaks: It rounds A to float16.
def float16_terms(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).half().double()
    if beta:
        result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.copy_(result)


# breaks: It multiplies A by an alpha of 0, NaN included.
def reads_a_for_alpha_zero(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    result += alpha * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).double()
    if beta:
        result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.copy_(result)


# breaks: It multiplies B by a beta of 0, NaN included.
def reads_b_for_beta_zero(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    result = torch.zeros(m, n, dtype=torch.float64, device=C.device)
    if alpha:
        result += alpha * A.as_strided((m, n), (1, lda) if transa == "N" else (lda, 1)).double()
    result += beta * B.as_strided((m, n), (1, ldb) if transb == "N" else (ldb, 1)).double()
    c.copy_(result)
