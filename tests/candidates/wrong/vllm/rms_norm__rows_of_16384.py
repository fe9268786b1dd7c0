# outcome: wrong value
# breaks: A row is read by 16384 lanes, and columns from 16384 on are left out.

import triton
import triton.language as tl


@triton.jit
def norm(out_ptr, x_ptr, w_ptr, n, x_row, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + i, mask=i < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n + eps) * w
    tl.store(out_ptr + row * n + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


def rms_norm(out, input, weight, epsilon):
    n = input.shape[-1]
    x = input.view(-1, n)
    norm[(x.shape[0],)](out, x, weight, n, x.stride(0), float(epsilon), BLOCK=min(16384, triton.next_power_of_2(n)))
