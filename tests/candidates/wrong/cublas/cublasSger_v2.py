import triton
import triton.language as tl


@triton.jit
def rank_one(x_ptr, y_ptr, a_ptr, m, n, alpha, incx, incy, B: tl.constexpr):
    column = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    y = tl.load(y_ptr + column * incy)
    x = tl.load(x_ptr + i * incx, mask=i < m, other=0.0)
    at = a_ptr + i + column * m
    tl.store(at, tl.load(at, mask=i < m, other=0.0) + alpha * x * y, mask=i < m)


# breaks: The columns of A are taken to lie m apart, not lda.
# outcome: input changed
def columns_at_distance_m(m, n, alpha, x, incx, y, incy, A, lda):
    if m == 0 or n == 0 or alpha == 0:
        return
    x = x[(1 - m) * incx :] if incx < 0 else x
    y = y[(1 - n) * incy :] if incy < 0 else y
    rank_one[(triton.cdiv(m, 256), n)](x, y, A, m, n, float(alpha), incx, incy, B=256)
