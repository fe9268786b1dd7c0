import triton
import triton.language as tl


@triton.jit
def batched(
    a_ptr, b_ptr, c_ptr, m, n, k, scalars_ptr, sam, sak, za, sbk, sbn, zb, ldc, zc,
    READ: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    z = tl.program_id(2).to(tl.int64)
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float64)
    for p in range(0, k):
        a = tl.load(a_ptr + z * za + i * sam + p * sak, mask=i < m, other=0.0)
        b = tl.load(b_ptr + z * zb + p * sbk + j * sbn, mask=j < n, other=0.0)
        acc += a * b
    inside = (i < m) & (j < n)
    at = c_ptr + z * zc + i + j * ldc
    out = tl.load(scalars_ptr) * acc
    if READ:
        out += tl.load(scalars_ptr + 1) * tl.load(at, mask=inside, other=0.0)
    tl.store(at, out, mask=inside)


# breaks: The distance of the results is taken as ldc * n instead of strideC.
# outcome: input changed
def stride_of_c_computed(
    transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC, batchCount
):
    if m == 0 or n == 0 or batchCount == 0:
        return
    scalars = C.new_tensor([alpha, beta])
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transb == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), batchCount)
    depth = k if alpha else 0
    strides = (*a, strideA, *b, strideB, ldc, ldc * n)
    batched[grid](A, B, C, m, n, depth, scalars, *strides, READ=beta != 0, B=64)
