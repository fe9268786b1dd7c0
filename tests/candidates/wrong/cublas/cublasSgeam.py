import triton
import triton.language as tl


@triton.jit
def geam_distance_of_c_for_a(
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


# breaks: The columns of an A that is not transposed are taken to lie ldc apart, as those of C do.
def distance_of_c_for_a(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m and n:
        steps = (1, ldc) if transa == "N" else (lda, 1)
        steps += (1, ldb) if transb == "N" else (ldb, 1)
        geam_distance_of_c_for_a[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
            C, A, B, float(alpha), float(beta), m, n, *steps, ldc, READ_A=alpha != 0, READ_B=beta != 0, B=64
        )


@triton.jit
def geam_one_transposition_for_both(
    a_ptr, b_ptr, c_ptr, m, alpha, beta, sai, saj, sbi, sbj, ldc,
    READ_A: tl.constexpr, READ_B: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    j = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    if READ_A:
        total += alpha * tl.load(a_ptr + i * sai + j * saj, mask=i < m, other=0.0)
    if READ_B:
        total += beta * tl.load(b_ptr + i * sbi + j * sbj, mask=i < m, other=0.0)
    tl.store(c_ptr + i + j * ldc, total, mask=i < m)


# breaks: transa counts for B as well.
def one_transposition_for_both(transa, transb, m, n, alpha, A, lda, beta, B, ldb, C, ldc):
    if m == 0 or n == 0:
        return
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transa == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 128), n)
    reads = {"READ_A": alpha != 0, "READ_B": beta != 0}
    geam_one_transposition_for_both[grid](A, B, C, m, float(alpha), float(beta), *a, *b, ldc, **reads, BLOCK=128)
