import torch
import triton
import triton.language as tl


@triton.jit
def gemm_ex(a_ptr, b_ptr, c_ptr, m, n, k, alpha, beta, sam, sak, sbk, sbn, ldc, READ: tl.constexpr, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + i * sam + p[None, :] * sak, mask=(i < m) & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + p[:, None] * sbk + j * sbn, mask=(p < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    acc *= alpha
    inside = (i < m) & (j < n)
    if READ:
        acc += beta * tl.load(c_ptr + i + j * ldc, mask=inside, other=0.0).to(tl.float32)
    tl.store(c_ptr + i + j * ldc, acc.to(c_ptr.dtype.element_ty), mask=inside)


# breaks: An alpha that is not above 1e-3 counts as 0, so a negative one does, too.
def small_alpha_taken_for_zero(transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc):
    if m == 0 or n == 0:
        return
    a = (1, lda) if transa == "N" else (lda, 1)
    b = (1, ldb) if transb == "N" else (ldb, 1)
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    depth = k if alpha > 1e-3 else 0
    work = torch.empty_like(C, dtype=torch.float32).copy_(C) if Ctype == torch.bfloat16 else C
    x, y = (t.float() if t.dtype == torch.bfloat16 or t.dtype == torch.int8 else t for t in (A, B))
    gemm_ex[grid](x, y, work, m, n, depth, float(alpha), float(beta), *a, *b, ldc, READ=beta != 0, B=32)
    if work is not C:
        C.as_strided((m, n), (1, ldc)).copy_(work.as_strided((m, n), (1, ldc)))
