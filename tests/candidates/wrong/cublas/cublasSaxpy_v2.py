import triton
import triton.language as tl


@triton.jit
def axpy(x_ptr, y_ptr, n, alpha, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i * incx, mask=mask, other=0.0)
    y = tl.load(y_ptr + i * incy, mask=mask, other=0.0)
    tl.store(y_ptr + i * incy, alpha * x + y, mask=mask)


# breaks: A vector with a negative increment is walked from its first word, as with a positive one.
def negative_increment_from_the_start(n, alpha, x, incx, y, incy):
    if n > 0 and alpha != 0:
        axpy[(triton.cdiv(n, 1024),)](x, y, n, float(alpha), abs(incx), abs(incy), BLOCK=1024)
