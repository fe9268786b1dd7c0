# outcome: wrong value
# breaks: The grid counts tiles of rows first, the kernel takes its first number for the tile of columns.

import triton
import triton.language as tl


@triton.jit
def gemm(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_i,
    a_p,
    b_p,
    b_j,
    ldc,
    alpha,
    beta,
    READ: tl.constexpr,
    B: tl.constexpr,
    K: tl.constexpr,
):
    i = tl.program_id(1) * B + tl.arange(0, B)
    j = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, K):
        p = first + tl.arange(0, K)
        a = tl.load(a_ptr + i[:, None] * a_i + p[None, :] * a_p, mask=(i < m)[:, None] & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + p[:, None] * b_p + j[None, :] * b_j, mask=(p < k)[:, None] & (j < n)[None, :], other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    acc *= alpha
    at, inside = c_ptr + i[:, None] + j[None, :] * ldc, (i < m)[:, None] & (j < n)[None, :]
    if READ:
        acc += beta * tl.load(at, mask=inside, other=0.0)
    tl.store(at, acc, mask=inside)


def cublasSgemm_v2(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    steps = (1, lda) if transa == "N" else (lda, 1)
    steps += (1, ldb) if transb == "N" else (ldb, 1)
    gemm[(triton.cdiv(m, 128), triton.cdiv(n, 128))](
        A, B, C, m, n, k if alpha else 0, *steps, ldc, float(alpha), float(beta), READ=beta != 0, B=128, K=32
    )
