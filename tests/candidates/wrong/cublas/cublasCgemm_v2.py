import torch
import triton
import triton.language as tl


@triton.jit
def real_gemm(a_ptr, b_ptr, out_ptr, m, n, k, sam, sak, sbk, sbn, B: tl.constexpr):
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    j = (tl.program_id(1) * B + tl.arange(0, B))[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for first in range(0, k, B):
        p = first + tl.arange(0, B)
        a = tl.load(a_ptr + 2 * (i * sam + p[None, :] * sak), mask=(i < m) & (p < k)[None, :], other=0.0)
        b = tl.load(b_ptr + 2 * (p[:, None] * sbk + j * sbn), mask=(p < k)[:, None] & (j < n), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(out_ptr + i * n + j, acc, mask=(i < m) & (j < n))


# breaks: Only the real part of alpha is used.
def imaginary_alpha_lost(transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc):
    if m == 0 or n == 0:
        return
    c = C.as_strided((m, n), (1, ldc))
    product = torch.zeros((m, n), dtype=torch.complex64, device=C.device)
    if k and alpha != 0:
        sa = (1, lda) if transa == "N" else (lda, 1)
        sb = (1, ldb) if transb == "N" else (ldb, 1)
        a, b = torch.view_as_real(A), torch.view_as_real(B)
        parts = {}
        for x in (0, 1):
            for y in (0, 1):
                out = torch.empty((m, n), dtype=torch.float32, device=C.device)
                grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
                real_gemm[grid](a.reshape(-1)[x:], b.reshape(-1)[y:], out, m, n, k, *sa, *sb, B=32)
                parts[x, y] = out
        fa, fb = (-1 if transa == "C" else 1), (-1 if transb == "C" else 1)
        real = parts[0, 0] - fa * fb * parts[1, 1]
        imag = fb * parts[0, 1] + fa * parts[1, 0]
        product = alpha.real * torch.complex(real, imag)
    c.copy_(product if beta == 0 else product + beta * c)
