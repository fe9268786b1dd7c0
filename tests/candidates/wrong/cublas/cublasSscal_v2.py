import triton
import triton.language as tl


@triton.jit
def scal(x_ptr, words, alpha, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < words, other=0.0)
    tl.store(x_ptr + i, alpha * x, mask=i < words)


# breaks: It scales every word from the first element to the last, also what lies between.
# outcome: input changed
def scales_the_span(n, alpha, x, incx):
    if n == 0:
        return
    words = 1 + (n - 1) * incx
    scal[(triton.cdiv(words, 2048),)](x, words, float(alpha), BLOCK=2048)
