import triton
import triton.language as tl


@triton.jit
def syrk(a_ptr, c_ptr, n, k, alpha, beta, sai, sak, ldc, READ: tl.constexpr, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        left = tl.load(a_ptr + i * sai + p[None, :] * sak, mask=(i < n) & (p < k)[None, :], other=0.0)
        right = tl.load(a_ptr + j * sai + p[:, None] * sak, mask=(j < n) & (p < k)[:, None], other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    inside = (i < n) & (j < n)
    acc *= alpha
    if READ:
        acc += beta * tl.load(c_ptr + i + j * ldc, mask=inside, other=0.0)
    tl.store(c_ptr + i + j * ldc, acc, mask=inside)


# breaks: The whole square is written, also the triangle that is not stored.
# outcome: input changed
def writes_both_triangles(uplo, trans, n, k, alpha, A, lda, beta, C, ldc):
    if n == 0:
        return
    strides = (1, lda) if trans == "N" else (lda, 1)
    grid = (triton.cdiv(n, 32), triton.cdiv(n, 32))
    syrk[grid](A, C, n, k if alpha else 0, float(alpha), float(beta), *strides, ldc, READ=beta != 0, B=32)
