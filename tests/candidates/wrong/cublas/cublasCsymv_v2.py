import torch
import triton
import triton.language as tl


@triton.jit
def csymv(a_ptr, x_ptr, out_ptr, n, lda, incx, LOWER: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    re = tl.zeros((B,), tl.float32)
    im = tl.zeros((B,), tl.float32)
    for j in range(0, n):
        xr = tl.load(x_ptr + 2 * j * incx)
        xi = tl.load(x_ptr + 2 * j * incx + 1)
        stored = ((i >= j) if LOWER else (i <= j)) & (i < n)
        at = a_ptr + 2 * (i + j * lda)
        ar, ai = tl.load(at, mask=stored, other=0.0), tl.load(at + 1, mask=stored, other=0.0)
        re += ar * xr - ai * xi
        im += ar * xi + ai * xr
        mirrored = ((i <= j) if LOWER else (i >= j)) & (i < n)
        at = a_ptr + 2 * (j + i * lda)
        ar, ai = tl.load(at, mask=mirrored, other=0.0), tl.load(at + 1, mask=mirrored, other=0.0)
        re += ar * xr - ai * xi
        im += ar * xi + ai * xr
    tl.store(out_ptr + 2 * i, re, mask=i < n)
    tl.store(out_ptr + 2 * i + 1, im, mask=i < n)


# breaks: The mirrored half includes the diagonal, which counts twice.
def diagonal_counts_twice(uplo, n, alpha, A, lda, x, incx, beta, y, incy):
    if n == 0:
        return
    product = torch.zeros(n, dtype=torch.complex64, device=y.device)
    if alpha != 0:
        x = x[max(0, (1 - n) * incx) :]
        parts = [torch.view_as_real(each) for each in (A, x, product)]
        csymv[(triton.cdiv(n, 64),)](*parts, n, lda, incx, LOWER=uplo == "L", B=64)
    target = y.as_strided((n,), (abs(incy),))
    old = target.flip(0) if incy < 0 else target
    result = alpha * product if beta == 0 else alpha * product + beta * old
    target.copy_(result.flip(0) if incy < 0 else result)
