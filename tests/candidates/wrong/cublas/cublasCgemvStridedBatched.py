import torch
import triton
import triton.language as tl


@triton.jit
def cgemv_batch(a_ptr, x_ptr, out_ptr, rows, columns, sa, sb, za, incx, zx, first, sign, limit, B: tl.constexpr):
    z = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    re = tl.zeros((B,), tl.float32)
    im = tl.zeros((B,), tl.float32)
    for j in range(0, columns):
        at = a_ptr + 2 * (z * za + i * sa + j * sb)
        ar = tl.load(at, mask=i < rows, other=0.0)
        ai = sign * tl.load(at + 1, mask=i < rows, other=0.0)
        place = z * zx + first + j * incx
        xr = tl.load(x_ptr + 2 * place, mask=place < limit, other=0.0)
        xi = tl.load(x_ptr + 2 * place + 1, mask=place < limit, other=0.0)
        re += ar * xr - ai * xi
        im += ar * xi + ai * xr
    tl.store(out_ptr + 2 * (z * rows + i), re, mask=i < rows)
    tl.store(out_ptr + 2 * (z * rows + i) + 1, im, mask=i < rows)


# breaks: The vectors x are looked for at stridey.
def vectors_at_the_stride_of_results(
    trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount
):
    if not (m and n and batchCount):
        return
    length_x, length_y = (n, m) if trans == "N" else (m, n)
    product = torch.zeros((batchCount, length_y), dtype=torch.complex64, device=y.device)
    if alpha != 0:
        strides = (1, lda) if trans == "N" else (lda, 1)
        first = max(0, (1 - length_x) * incx)
        args = (torch.view_as_real(A), torch.view_as_real(x), torch.view_as_real(product))
        sizes = (length_y, length_x, *strides, strideA, incx, stridey, first)
        grid = (triton.cdiv(length_y, 64), batchCount)
        cgemv_batch[grid](*args, *sizes, -1.0 if trans == "C" else 1.0, x.numel(), B=64)
    target = y.as_strided((batchCount, length_y), (stridey, abs(incy)))
    old = target.flip(1) if incy < 0 else target
    result = alpha * product if beta == 0 else alpha * product + beta * old
    target.copy_(result.flip(1) if incy < 0 else result)
