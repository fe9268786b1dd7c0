# outcome: wrong value
# breaks: The columns of an A that is not transposed are taken to lie ldc apart, as those of C do.

import triton
import triton.language as tl


@triton.jit
def geam(
    c_ptr, a_ptr, b_ptr, alpha, beta, m, n, a_i, a_j, b_i, b_j, ldc,
    READ_A: tl.constexpr, READ_B: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    inside = (i < m) & (j < n)
    total = tl.zeros((B, B), tl.float32)
    if READ_A:
        total += alpha * tl.load(a_ptr + i * a_i + j * a_j, mask=inside, other=0.0)
    if READ_B:
        total += beta * tl.load(b_ptr + i * b_i + j * b_j, mask=inside, other=0.0)
    tl.store(c_ptr + i + j * ldc, total, mask=inside)


def cublasSgeam(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m and n:
        steps = (1, ldc) if transa == "N" else (lda, 1)
        steps += (1, ldb) if transb == "N" else (ldb, 1)
        geam[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            C, A, B, float(alpha), float(beta), m, n, *steps, ldc, READ_A=alpha != 0, READ_B=beta != 0, B=64
        )
