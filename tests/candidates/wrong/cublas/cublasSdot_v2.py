import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline


@triton.jit
def dot(x_ptr, y_ptr, result_ptr, n, incx, incy, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * incx, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i * incy, mask=i < n, other=0.0)
    tl.store(result_ptr, tl.sum(x * y, axis=0))


# breaks: Each program stores its part to result; with more than one the last overwrites the others.
def last_program_wins(n, x, incx, y, incy, result):
    if n == 0:
        result.zero_()
        return
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    dot[(triton.cdiv(n, 256),)](x, y, result, n, incx, incy, BLOCK=256)


CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

void dot(std::intptr_t x_at, std::int64_t incx, std::intptr_t y_at, std::int64_t incy, std::int64_t n,
         std::intptr_t result) {
  auto x = reinterpret_cast<const float *>(x_at);
  auto y = reinterpret_cast<const float *>(y_at);
  double a = 0, b = 0, c = 0, d = 0;
  for (std::int64_t i = 0; i + 3 < n; i += 4) {
    a += double(x[i * incx]) * y[i * incy];
    b += double(x[(i + 1) * incx]) * y[(i + 1) * incy];
    c += double(x[(i + 2) * incx]) * y[(i + 2) * incy];
    d += double(x[(i + 3) * incx]) * y[(i + 3) * incy];
  }
  *reinterpret_cast<float *>(result) = float(a + b + c + d);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("dot", &dot); }
"""


built = load_inline("unrolled_dot", CPP, extra_cflags=["-O2"], no_implicit_headers=True)


# breaks: The loop takes four terms at a time, and nobody takes what is left.
def tail_of_unrolled_loop(n, x, incx, y, incy, result):
    x_at = x.data_ptr() + 4 * max(0, (1 - n) * incx)
    y_at = y.data_ptr() + 4 * max(0, (1 - n) * incy)
    built.dot(x_at, incx, y_at, incy, n, result.data_ptr())
