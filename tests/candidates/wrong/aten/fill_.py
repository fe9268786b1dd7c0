import triton
import triton.language as tl


@triton.jit
def fill_span(x_ptr, n, value, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.zeros((BLOCK,), tl.float32) + value
    tl.store(x_ptr + i, v.to(x_ptr.dtype.element_ty), mask=i < n)


# breaks: It fills everything from the first element to the last, also what lies between.
# outcome: input changed
def fills_the_span(self, value):
    value = value.item() if hasattr(value, "item") else value
    if self.numel():
        span = 1
        for size, stride in zip(self.shape, self.stride(), strict=True):
            span += (size - 1) * stride
        fill_span[(triton.cdiv(span, 4096),)](self, span, float(value), BLOCK=4096)
    return self
