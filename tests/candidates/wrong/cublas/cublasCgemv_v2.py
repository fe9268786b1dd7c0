import torch
import triton
import triton.language as tl


@triton.jit
def cgemv(a_ptr, x_ptr, out_ptr, rows, columns, sa, sb, incx, sign, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    re = tl.zeros((B,), tl.float32)
    im = tl.zeros((B,), tl.float32)
    for j in range(0, columns):
        at = a_ptr + 2 * (i * sa + j * sb)
        ar = tl.load(at, mask=i < rows, other=0.0)
        ai = tl.load(at + 1, mask=i < rows, other=0.0)
        xr = tl.load(x_ptr + 2 * j * incx)
        xi = sign * tl.load(x_ptr + 2 * j * incx + 1)
        re += ar * xr - ai * xi
        im += ar * xi + ai * xr
    tl.store(out_ptr + 2 * i, re, mask=i < rows)
    tl.store(out_ptr + 2 * i + 1, im, mask=i < rows)


# breaks: For 'C' the vector is conjugated instead of the matrix.
def conjugates_the_vector(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m == 0 or n == 0:
        return
    length_x, length_y = (n, m) if trans == "N" else (m, n)
    product = torch.zeros(length_y, dtype=torch.complex64, device=y.device)
    if alpha != 0:
        strides = (1, lda) if trans == "N" else (lda, 1)
        x = x[max(0, (1 - length_x) * incx) :]
        sign = -1.0 if trans == "C" else 1.0
        args = (torch.view_as_real(A), torch.view_as_real(x), torch.view_as_real(product))
        cgemv[(triton.cdiv(length_y, 64),)](*args, length_y, length_x, *strides, incx, sign, B=64)
    target = y.as_strided((length_y,), (abs(incy),))
    target = target.flip(0) if incy < 0 else target
    result = alpha * product if beta == 0 else alpha * product + beta * target
    y.as_strided((length_y,), (abs(incy),)).copy_(result.flip(0) if incy < 0 else result)
