"""cublasSdot_v2 in C++: result[0] = sum of x[i] * y[i] over n elements at given increments.

Addresses and sizes go in as numbers, so that pybind11's header is enough; torch/extension.h compiles for 15 s more.
"""

import torch
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <algorithm>
#include <cstdint>

using Address = std::intptr_t;
using Size = std::int64_t;

#ifdef WITH_CUDA
void dot_cuda(Address x, Size incx, Address y, Size incy, Size n, Address shares, Address result, Address stream);
#endif

// Blocks are summed by themselves and then added up, so that the rounding error does not grow with n.
void dot_cpu(Address x_address, Size incx, Address y_address, Size incy, Size n, Address result) {
  constexpr Size lanes = 16, block = 4096;
  auto x = reinterpret_cast<const float *>(x_address);
  auto y = reinterpret_cast<const float *>(y_address);
  double total = 0;
  for (Size first = 0; first < n; first += block) {
    const Size last = std::min(n, first + block);
    float sums[lanes] = {};
    Size i = first;
    for (; i + lanes <= last; i += lanes)
      for (Size lane = 0; lane < lanes; ++lane) sums[lane] += x[(i + lane) * incx] * y[(i + lane) * incy];
    for (; i < last; ++i) sums[0] += x[i * incx] * y[i * incy];
    for (float sum : sums) total += sum;
  }
  *reinterpret_cast<float *>(result) = static_cast<float>(total);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("dot_cpu", &dot_cpu);
#ifdef WITH_CUDA
  m.def("dot_cuda", &dot_cuda);
#endif
}
"""

CUDA = r"""
#include <cuda_runtime.h>
#include <cstdint>

constexpr int THREADS = 256, BLOCKS = 1024;

__device__ float block_sum(float value) {
  __shared__ float parts[THREADS / 32];
  for (int distance = 16; distance; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0;
  for (int warp = 0; warp < THREADS / 32; ++warp) total += parts[warp];
  return total;
}

__global__ void share(const float *x, int64_t incx, const float *y, int64_t incy, int64_t n, float *shares) {
  float sum = 0;
  for (int64_t i = blockIdx.x * int64_t(THREADS) + threadIdx.x; i < n; i += int64_t(gridDim.x) * THREADS)
    sum += x[i * incx] * y[i * incy];
  sum = block_sum(sum);
  if (threadIdx.x == 0) shares[blockIdx.x] = sum;
}

// One block adds the shares, always in the same order: two calls agree to the last bit.
__global__ void add_up(const float *shares, float *result) {
  float sum = 0;
  for (int i = threadIdx.x; i < BLOCKS; i += THREADS) sum += shares[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}

void dot_cuda(intptr_t x, int64_t incx, intptr_t y, int64_t incy, int64_t n, intptr_t shares, intptr_t result,
              intptr_t stream) {
  auto queue = reinterpret_cast<cudaStream_t>(stream);
  auto between = reinterpret_cast<float *>(shares);
  share<<<BLOCKS, THREADS, 0, queue>>>(reinterpret_cast<const float *>(x), incx, reinterpret_cast<const float *>(y),
                                       incy, n, between);
  add_up<<<1, THREADS, 0, queue>>>(between, reinterpret_cast<float *>(result));
}
"""

GPU = torch.cuda.is_available()
_built = load_inline(
    "kgbench_dot",
    CPP,
    cuda_sources=CUDA if GPU else None,
    extra_cflags=["-O3", "-DWITH_CUDA"] if GPU else ["-O3"],
    no_implicit_headers=True,
)


def cublasSdot_v2(n, x, incx, y, incy, result):
    """x, y: 1-D float32 storage; a negative increment walks from the far end: element i lies at (i + 1 - n) * inc."""
    x_at, y_at = _start(x, n, incx), _start(y, n, incy)
    if x.is_cuda:
        shares = torch.empty(1024, dtype=x.dtype, device=x.device)
        stream = torch.cuda.current_stream().cuda_stream
        _built.dot_cuda(x_at, incx, y_at, incy, n, shares.data_ptr(), result.data_ptr(), stream)
    else:
        _built.dot_cpu(x_at, incx, y_at, incy, n, result.data_ptr())


def _start(vector, n, increment):
    """The address of element 0."""
    first = (1 - n) * increment if increment < 0 and n > 0 else 0
    return vector.data_ptr() + first * vector.element_size()
