import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i * incy, tl.load(x_ptr + i * incx, mask=i < n), mask=i < n)


# breaks: Increments of equal size are copied word by word, also where their signs differ.
def same_distance_is_same_order(n, x, incx, y, incy):
    if n == 0:
        return
    if abs(incx) == abs(incy):
        incx = incy = abs(incx)
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    copy[(triton.cdiv(n, 1024),)](x, y, n, incx, incy, BLOCK=1024)
