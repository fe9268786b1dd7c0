import triton
import triton.language as tl

_config = {}


@triton.jit
def gemm_steps(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, sam, sak, sbk, sbn, ldc,
    READ: tl.constexpr, STEPS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for step in range(STEPS):
        depth = step * B + tl.arange(0, B)
        a = tl.load(a_ptr + i * sam + depth[None, :] * sak, mask=(i < m) & (depth < k)[None, :], other=0.0)
        b = tl.load(b_ptr + depth[:, None] * sbk + j * sbn, mask=(depth < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (i < m) & (j < n)
    out = alpha * acc
    if READ:
        out += beta * tl.load(c_ptr + i + j * ldc, mask=inside, other=0.0)
    tl.store(c_ptr + i + j * ldc, out, mask=inside)


# breaks: The tiles along the depth are counted once, in the first call, as if by a tuning cache without a key.
def block_size_of_first_call(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    if k and "steps" not in _config:
        _config["steps"] = triton.cdiv(k, 32)
    steps = _config.get("steps", 0) if alpha != 0 else 0
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transb == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    gemm_steps[grid](A, B, C, m, n, k, float(alpha), float(beta), *a, *b, ldc, READ=beta != 0, STEPS=steps, B=32)


@triton.jit
def gemm_depth_zero_returns(
    a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, sam, sak, sbk, sbn, ldc, READ: tl.constexpr, B: tl.constexpr
):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + i * sam + p[None, :] * sak, mask=(i < m) & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + p[:, None] * sbk + j * sbn, mask=(p < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    inside = (i < m) & (j < n)
    out = alpha * acc
    if READ:
        out += beta * tl.load(c_ptr + i + j * ldc, mask=inside, other=0.0)
    tl.store(c_ptr + i + j * ldc, out, mask=inside)


# breaks: With k = 0 it returns at once, but C is to become beta * C.
def depth_zero_returns(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0 or k == 0:
        return
    if alpha == 0:
        k = 0
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transb == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
    gemm_depth_zero_returns[grid](A, B, C, m, n, k, float(alpha), float(beta), *a, *b, ldc, READ=beta != 0, B=64)


@triton.jit
def gemm_distance_of_c_for_a(
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
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
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


# breaks: The columns of an A that is not transposed are taken to lie ldc apart.
# outcome: wrong value | crashed
def distance_of_c_for_a(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    steps = (1, ldc) if transa == "N" else (lda, 1)
    steps += (1, ldb) if transb == "N" else (ldb, 1)
    gemm_distance_of_c_for_a[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        A, B, C, m, n, k if alpha else 0, *steps, ldc, float(alpha), float(beta), READ=beta != 0, B=64, K=32
    )


@triton.jit
def gemm_programs_of_rows_and_columns_exchanged(
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


# breaks: The grid counts tiles of rows first, the kernel takes its first number for the tile of columns.
def programs_of_rows_and_columns_exchanged(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    steps = (1, lda) if transa == "N" else (lda, 1)
    steps += (1, ldb) if transb == "N" else (ldb, 1)
    gemm_programs_of_rows_and_columns_exchanged[(triton.cdiv(m, 128), triton.cdiv(n, 128))](
        A, B, C, m, n, k if alpha else 0, *steps, ldc, float(alpha), float(beta), READ=beta != 0, B=128, K=32
    )
