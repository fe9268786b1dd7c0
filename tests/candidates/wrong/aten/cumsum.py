import torch
import triton
import triton.language as tl
from torch.utils.cpp_extension import load_inline


@triton.jit
def scan_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    carry = tl.sum(tl.zeros((BLOCK,), x_ptr.dtype.element_ty), axis=0)
    for first in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + first + i, mask=first + i < n, other=0)
        tl.store(y_ptr + row * n + first + i, tl.cumsum(x, axis=0) + carry, mask=first + i < n)
        carry = tl.sum(x, axis=0)


# breaks: A block starts from the sum of the block before it alone, right for two blocks.
def carry_of_one_block(self, dim, *, dtype=None):
    whole = not self.is_floating_point() and not self.is_complex()
    dtype = dtype or (torch.int64 if whole else self.dtype)
    x = self.to(dtype)
    if dtype.is_complex:
        return torch.complex(carry_of_one_block(x.real, dim), carry_of_one_block(x.imag, dim))
    x = x.to(torch.float64) if dtype.is_floating_point else x.to(torch.int64)
    x = (x.movedim(dim, -1) if x.ndim else x.reshape(1)).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        scan_rows[(x.numel() // x.shape[-1],)](x, y, x.shape[-1], BLOCK=64)
    y = y.movedim(-1, dim) if self.ndim else y.reshape(())
    return y.to(dtype).contiguous()


CPP = r"""
#include <pybind11/pybind11.h>
#include <cstdint>

template <typename T>
void scan(std::intptr_t x_address, std::intptr_t y_address, std::int64_t rows, std::int64_t n) {
  auto x = reinterpret_cast<const T *>(x_address);
  auto y = reinterpret_cast<T *>(y_address);
  T total = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < n; ++i) y[row * n + i] = total += x[row * n + i];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("whole", &scan<std::int64_t>);
  m.def("floating", &scan<double>);
}
"""


built = load_inline("scan_rows", CPP, extra_cflags=["-O2"], no_implicit_headers=True)


# breaks: The running total is not set back at the beginning of a row.
def total_carried_over_rows(self, dim, *, dtype=None):
    floating = self.is_floating_point() or self.is_complex()
    dtype = dtype or (self.dtype if floating else torch.int64)
    x = self.to(dtype)
    if dtype.is_complex:
        return torch.complex(total_carried_over_rows(x.real, dim), total_carried_over_rows(x.imag, dim))
    x = x.double() if dtype.is_floating_point else x.long()
    x = (x.movedim(dim, -1) if x.ndim else x.reshape(1)).contiguous()
    y = torch.empty_like(x)
    if x.numel():
        scan = built.floating if dtype.is_floating_point else built.whole
        scan(x.data_ptr(), y.data_ptr(), x.numel() // x.shape[-1], x.shape[-1])
    return (y.movedim(-1, dim) if self.ndim else y.reshape(())).to(dtype).contiguous()
