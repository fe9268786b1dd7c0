import triton
import triton.language as tl


@triton.jit
def asum(x_ptr, result_ptr, n, incx, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * incx, mask=i < n, other=0.0)
    tl.atomic_add(result_ptr, tl.sum(tl.abs(x), axis=0))


# breaks: Partial sums are added to result, which nobody set to 0.
def result_not_cleared(n, x, incx, result):
    if n <= 0:
        result.zero_()
        return
    asum[(triton.cdiv(n, 512),)](x, result, n, incx, BLOCK=512)
