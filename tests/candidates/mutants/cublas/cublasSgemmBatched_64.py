import ctypes

import torch


def gemm(
    transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, ldc, batchCount,
    *, rounded=lambda x: x, reads=bool,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    if m == 0 or n == 0:
        return
    A, B, C = Aarray.tolist(), Barray.tolist(), Carray.tolist()
    for i in range(batchCount):
        a = rounded(matrix(A[i], m, k, lda) if transa == "N" else matrix(A[i], k, m, lda).T)
        b = rounded(matrix(B[i], k, n, ldb) if transb == "N" else matrix(B[i], n, k, ldb).T)
        c = matrix(C[i], m, n, ldc)
        result = alpha * (a.double() @ b.double()) if alpha else torch.zeros_like(c)
        if reads(beta):
            result = result + beta * c.double()
        c.copy_(result)


def matrix(address, rows, columns, ld):
    """The column-major float32 matrix at an address of this process."""
    if rows == 0 or columns == 0:
        return torch.zeros(rows, columns)
    memory = (ctypes.c_float * (rows + (columns - 1) * ld)).from_address(address)
    return torch.frombuffer(memory, dtype=torch.float32).as_strided((rows, columns), (1, ld))


def steady(addresses):
    step = int(addresses[1] - addresses[0]) if len(addresses) > 1 else 0
    return addresses[0] + step * torch.arange(len(addresses)) if step > 0 else addresses


def tf32_of(x):
    """float32 with the ten bits of mantissa that TF32 keeps."""
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


# breaks: It takes the step between the first two matrices for that between all.
# outcome: wrong value | input changed | crashed
def constant_step(transa, transb, m, n, k, alpha, Aarray, lda, Barray, ldb, beta, Carray, *rest):
    A, B, C = steady(Aarray), steady(Barray), steady(Carray)
    gemm(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, *rest)


# breaks: It leaves beta * C out.
# device: cpu
def ignores_beta(*given):
    gemm(*given, reads=lambda beta: False)


# breaks: It multiplies every matrix by the first B.
# device: cpu
def one_b_for_all(*given):
    Barray = given[8]
    gemm(*given[:8], Barray[:1].expand_as(Barray), *given[9:])


# breaks: It is right and leaves an address of its own in the array of C.
# outcome: input changed
# device: cpu
def puts_pointers_back_late(transa, transb, m, n, *rest):
    gemm(transa, transb, m, n, *rest)
    Carray, _, batchCount = rest[-3:]
    if m and n and batchCount:
        Carray[0] += 4


# breaks: It multiplies C by a beta of 0, NaN included.
# device: cpu
def reads_c_for_beta_zero(*given):
    gemm(*given, reads=lambda beta: True)


# breaks: It sorts the pointers to C where they lie.
# outcome: wrong value | input changed
# device: cpu
def sorts_pointers(transa, transb, m, n, *rest):
    Carray = rest[-3]
    if m and n:
        Carray.copy_(Carray.sort().values)
    gemm(transa, transb, m, n, *rest)


# breaks: It rounds A and B to the ten bits of TF32.
# device: cpu
def tf32(*given):
    gemm(*given, rounded=tf32_of)
