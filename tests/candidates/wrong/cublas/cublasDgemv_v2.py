import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline


@triton.jit
def gemv(a_ptr, x_ptr, y_ptr, scalars_ptr, rows, columns, sa, sb, incx, incy, READ: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float64)
    for j in range(0, columns):
        acc += tl.load(a_ptr + i * sa + j * sb, mask=i < rows, other=0.0) * tl.load(x_ptr + j * incx)
    acc *= tl.load(scalars_ptr)
    if READ:
        acc += tl.load(scalars_ptr + 1) * tl.load(y_ptr + i * incy, mask=i < rows, other=0.0)
    tl.store(y_ptr + i * incy, acc, mask=i < rows)


# breaks: y is scaled and written for m elements, also where the matrix is transposed and y has n.
def beta_for_rows_only(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m == 0 or n == 0:
        return
    scalars = y.new_tensor([alpha, beta])
    length_x, length_y = (n, m) if trans == "N" else (m, n)
    x = x[max(0, (1 - length_x) * incx) :]
    y = y[max(0, (1 - length_y) * incy) :]
    strides = (1, lda) if trans == "N" else (lda, 1)
    rows = min(m, length_y)
    columns = length_x if alpha else 0
    gemv[(triton.cdiv(rows, 128),)](A, x, y, scalars, rows, columns, *strides, incx, incy, READ=beta != 0, B=128)


CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

using Size = std::int64_t;

void gemv(Size rows, Size columns, double alpha, std::intptr_t a_at, Size down, Size across, std::intptr_t x_at,
          Size incx, double beta, std::intptr_t y_at, Size incy) {
  auto a = reinterpret_cast<const double *>(a_at);
  auto x = reinterpret_cast<const double *>(x_at);
  auto y = reinterpret_cast<double *>(y_at);
  for (Size i = 0; i < rows; ++i) {
    float sum = 0;
    if (alpha != 0)
      for (Size j = 0; j < columns; ++j) sum += a[i * down + j * across] * x[j * incx];
    y[i * incy] = alpha * sum + (beta == 0 ? 0.0 : beta * y[i * incy]);
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("gemv", &gemv); }
"""


built = load_inline("gemv_rows", CPP, extra_cflags=["-O2"], no_implicit_headers=True)


# breaks: The running sum is a float, though all else is double.
def sum_in_float(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m == 0 or n == 0:
        return
    rows, columns, strides = (m, n, (1, lda)) if trans == "N" else (n, m, (lda, 1))
    x_at = x.data_ptr() + 8 * max(0, (1 - columns) * incx)
    y_at = y.data_ptr() + 8 * max(0, (1 - rows) * incy)
    built.gemv(rows, columns, alpha, A.data_ptr(), *strides, x_at, incx, beta, y_at, incy)
