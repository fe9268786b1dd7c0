import triton
import triton.language as tl


@triton.jit
def sgemm_batch(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, sam, sak, sbk, sbn, zb, ldc, zc, READ: tl.constexpr, B: tl.constexpr
):
    z = tl.program_id(2).to(tl.int64)
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + z * zb + i * sam + p[None, :] * sak, mask=(i < m) & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + z * zb + p[:, None] * sbk + j * sbn, mask=(p < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    at, inside = c_ptr + z * zc + i + j * ldc, (i < m) & (j < n)
    acc *= alpha
    if READ:
        acc += beta * tl.load(at, mask=inside, other=0.0)
    tl.store(at, acc, mask=inside)


# breaks: A's matrices are looked for at B's distance.
# outcome: wrong value | crashed
def matrices_at_stride_of_b(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if not (m and n and batchCount):
        return
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transb == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32), batchCount)
    scalars = (float(alpha), float(beta))
    sgemm_batch[grid](A, B, C, m, n, k if alpha else 0, *scalars, *a, *b, strideB, ldc, strideC, READ=beta != 0, B=32)
