import triton
import triton.language as tl


@triton.jit
def syr2(x_ptr, y_ptr, a_ptr, alpha_ptr, n, incx, incy, lda, LOWER: tl.constexpr, B: tl.constexpr):
    j = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = ((i >= j) if LOWER else (i <= j)) & (i < n)
    x = tl.load(x_ptr + i * incx, mask=inside, other=0.0)
    y = tl.load(y_ptr + j * incy)
    at = a_ptr + i + j * lda
    old = tl.load(at, mask=inside, other=0.0)
    tl.store(at, old + 2.0 * tl.load(alpha_ptr) * x * y, mask=inside)


# breaks: It adds 2 alpha x yT in place of alpha (x yT + y xT), right on the diagonal.
def one_product_doubled(uplo, n, alpha, x, incx, y, incy, A, lda):
    if n == 0 or alpha == 0:
        return
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    syr2[(triton.cdiv(n, 128), n)](x, y, A, A.new_tensor([alpha]), n, incx, incy, lda, LOWER=uplo == "L", B=128)
