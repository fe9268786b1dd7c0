# breaks: It takes the flag 'T' for 'C'.
def conjugates_transpose(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    a, b = op_conjugates_transpose(A, transa, m, k, lda), op_conjugates_transpose(B, transb, k, n, ldb)
    c = C.as_strided((m, n), (1, ldc))
    product = alpha * (a @ b) if alpha and k else 0
    c.copy_(product + (beta * c if beta else c.new_zeros(c.shape)))


def op_conjugates_transpose(storage, flag, rows, columns, ld):
    x = storage.as_strided((rows, columns), (1, ld) if flag == "N" else (ld, 1))
    return x if flag == "N" else x.conj()


# breaks: It takes the flag 'C' for 'T'.
def no_conjugate(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    a, b = op_no_conjugate(A, transa, m, k, lda), op_no_conjugate(B, transb, k, n, ldb)
    c = C.as_strided((m, n), (1, ldc))
    product = alpha * (a @ b) if alpha and k else 0
    c.copy_(product + (beta * c if beta else c.new_zeros(c.shape)))


def op_no_conjugate(storage, flag, rows, columns, ld):
    return storage.as_strided((rows, columns), (1, ld) if flag == "N" else (ld, 1))
