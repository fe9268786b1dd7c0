# outcome: wrong value
# breaks: It multiplies C by a beta of 0, NaN included.
# device: cpu

import ctypes

import torch


def cublasSgemmBatched_64(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount):
    if m == 0 or n == 0:
        return
    A, B, C = Aarray.tolist(), Barray.tolist(), Carray.tolist()
    for i in range(batchCount):
        a = matrix(A[i], m, k, lda) if transa == "N" else matrix(A[i], k, m, lda).T
        b = matrix(B[i], k, n, ldb) if transb == "N" else matrix(B[i], n, k, ldb).T
        c = matrix(C[i], m, n, ldc)
        result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
        result = result + beta * c.double()
        c.copy_(result)


def matrix(address, rows, columns, ld):
    """The column-major float32 matrix at an address of this process."""
    if rows == 0 or columns == 0:
        return torch.zeros(rows, columns)
    memory = (ctypes.c_float * (rows + (columns - 1) * ld)).from_address(address)
    return torch.frombuffer(memory, dtype=torch.float32).as_strided((rows, columns), (1, ld))
