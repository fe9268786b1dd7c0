import triton
import triton.language as tl


@triton.jit
def trsv(a_ptr, x_ptr, n, si, sj, incx, FORWARD: tl.constexpr, UNIT: tl.constexpr, B: tl.constexpr):
    lane = tl.arange(0, B)
    x = tl.load(x_ptr + lane * incx, mask=lane < n, other=0.0)
    for step in range(0, n):
        i = step if FORWARD else n - 1 - step
        value = tl.sum(tl.where(lane == i, x, 0.0), axis=0)
        if not UNIT:
            value = value / tl.load(a_ptr + i * (si + sj))
        x = tl.where(lane == i, value, x)
        rest = (lane > i) & (lane < n) if FORWARD else lane < i
        a = tl.load(a_ptr + lane * si + i * sj, mask=rest, other=0.0)
        x = tl.where(rest, x - a * value, x)
    tl.store(x_ptr + lane * incx, x, mask=lane < n)


# breaks: Whether it starts from the first or the last unknown depends on uplo but not on trans.
def order_of_elimination_by_uplo_alone(uplo, trans, diag, n, A, lda, x, incx):
    if n == 0:
        return
    x = x[max(0, (1 - n) * incx) :]
    strides = (1, lda) if trans == "N" else (lda, 1)
    trsv[(1,)](A, x, n, *strides, incx, FORWARD=uplo == "L", UNIT=diag == "U", B=triton.next_power_of_2(n))
