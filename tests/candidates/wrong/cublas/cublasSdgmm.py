import triton
import triton.language as tl


@triton.jit
def dgmm(a_ptr, x_ptr, c_ptr, m, lda, incx, ldc, LEFT: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i + j * lda, mask=i < m, other=0.0)
    if LEFT:
        x = tl.load(x_ptr + i * incx, mask=i < m, other=0.0)
    else:
        x = tl.load(x_ptr + j * incx)
    tl.store(c_ptr + i + j * ldc, a * x, mask=i < m)


# breaks: x is walked from its first word also where incx is negative.
def negative_increment_from_the_start(mode, m, n, A, lda, x, incx, C, ldc):
    if m and n:
        dgmm[(triton.cdiv(m, 256), n)](A, x, C, m, lda, abs(incx), ldc, LEFT=mode == "L", BLOCK=256)
