"""softmax.int in C++: maximum, sum and result in three passes along a dimension of any stride.

Addresses and sizes go in as numbers, so that pybind11's header is enough; torch/extension.h compiles for 15 s more.
Numbers are float32 inside (float64 where that is asked for), rounded once when stored.
"""

import torch
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <pybind11/pybind11.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

using Address = std::intptr_t;
using Size = std::int64_t;

#ifdef WITH_CUDA
void softmax_cuda(int from, int to, Address x, Address out, Size outer, Size n, Size inner, Address stream);
#endif

// x, out: (outer, n, inner), contiguous.
template <class From, class To>
void run(Address x_address, Address out_address, Size outer, Size n, Size inner) {
  for (Size slice = 0; slice < outer * inner; ++slice) {
    const Size first = slice / inner * n * inner + slice % inner;
    auto x = reinterpret_cast<const From *>(x_address) + first;
    auto out = reinterpret_cast<To *>(out_address) + first;
    using Wide = std::conditional_t<std::is_same_v<To, double>, double, float>;
    float highest = -INFINITY;
    double total = 0;
    // A NaN is lower than nothing; it reaches the sum below and through it every result.
    for (Size i = 0; i < n; ++i) highest = std::fmax(highest, static_cast<float>(x[i * inner]));
    for (Size i = 0; i < n; ++i) total += std::exp(static_cast<Wide>(x[i * inner]) - highest);
    const Wide sum = static_cast<Wide>(total);
    for (Size i = 0; i < n; ++i) out[i * inner] = std::exp(static_cast<Wide>(x[i * inner]) - highest) / sum;
  }
}

template <class From>
void to_kind(int to, Address x, Address out, Size outer, Size n, Size inner) {
  switch (to) {
    case 0: return run<From, float>(x, out, outer, n, inner);
    case 1: return run<From, c10::Half>(x, out, outer, n, inner);
    case 2: return run<From, c10::BFloat16>(x, out, outer, n, inner);
    case 3: return run<From, double>(x, out, outer, n, inner);
  }
  throw std::invalid_argument("no such kind of number");
}

// from, to: 0 float32, 1 float16, 2 bfloat16; to alone: 3 float64
void softmax_cpu(int from, int to, Address x, Address out, Size outer, Size n, Size inner) {
  switch (from) {
    case 0: return to_kind<float>(to, x, out, outer, n, inner);
    case 1: return to_kind<c10::Half>(to, x, out, outer, n, inner);
    case 2: return to_kind<c10::BFloat16>(to, x, out, outer, n, inner);
  }
  throw std::invalid_argument("no such kind of number");
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("softmax_cpu", &softmax_cpu);
#ifdef WITH_CUDA
  m.def("softmax_cuda", &softmax_cuda);
#endif
}
"""

CUDA = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>

__device__ float wide(float x) { return x; }
__device__ float wide(__half x) { return __half2float(x); }
__device__ float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void store(float *to, float x) { *to = x; }
__device__ void store(__half *to, float x) { *to = __float2half_rn(x); }
__device__ void store(__nv_bfloat16 *to, float x) { *to = __float2bfloat16_rn(x); }
__device__ void store(double *to, double x) { *to = x; }

struct Highest {
  static constexpr float none = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  static constexpr float none = 0;
  template <class Wide>
  __device__ Wide operator()(Wide a, Wide b) const { return a + b; }
};

// What is computed with, by what is stored.
template <class To>
struct Arithmetic { using Wide = float; };
template <>
struct Arithmetic<double> { using Wide = double; };

// The same result in every thread of the block.
template <class Value, class Combine>
__device__ Value over_block(Value value, Combine combine) {
  __shared__ Value parts[32];
  for (int distance = 16; distance; distance /= 2) value = combine(value, __shfl_xor_sync(~0u, value, distance));
  __syncthreads();  // an earlier result has been read by all
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = Combine::none;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

// One block per slice of n elements, `inner` apart.
template <class From, class To>
__global__ void softmax(const From *x, To *out, int64_t n, int64_t inner) {
  const int64_t slice = blockIdx.x, first = slice / inner * n * inner + slice % inner;
  using Wide = typename Arithmetic<To>::Wide;
  float highest = Highest::none;
  Wide total = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) highest = fmaxf(highest, wide(x[first + i * inner]));
  highest = over_block(highest, Highest());
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) total += exp(Wide(wide(x[first + i * inner])) - highest);
  total = over_block(total, Sum());
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    store(out + first + i * inner, exp(Wide(wide(x[first + i * inner])) - highest) / total);
}

template <class From, class To>
void launch(intptr_t x, intptr_t out, int64_t outer, int64_t n, int64_t inner, cudaStream_t stream) {
  const int threads = n <= 128 ? 32 : n <= 1024 ? 128 : 1024;
  softmax<<<outer * inner, threads, 0, stream>>>(reinterpret_cast<const From *>(x), reinterpret_cast<To *>(out), n,
                                                 inner);
}

template <class From>
void to_kind(int to, intptr_t x, intptr_t out, int64_t outer, int64_t n, int64_t inner, cudaStream_t stream) {
  if (to == 0) launch<From, float>(x, out, outer, n, inner, stream);
  if (to == 1) launch<From, __half>(x, out, outer, n, inner, stream);
  if (to == 2) launch<From, __nv_bfloat16>(x, out, outer, n, inner, stream);
  if (to == 3) launch<From, double>(x, out, outer, n, inner, stream);
}

void softmax_cuda(int from, int to, intptr_t x, intptr_t out, int64_t outer, int64_t n, int64_t inner,
                  intptr_t stream) {
  auto queue = reinterpret_cast<cudaStream_t>(stream);
  if (from == 0) to_kind<float>(to, x, out, outer, n, inner, queue);
  if (from == 1) to_kind<__half>(to, x, out, outer, n, inner, queue);
  if (from == 2) to_kind<__nv_bfloat16>(to, x, out, outer, n, inner, queue);
}
"""

KINDS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
GPU = torch.cuda.is_available()
_built = load_inline(
    "kgbench_softmax",
    CPP,
    cuda_sources=CUDA if GPU else None,
    extra_cflags=["-O3", "-DWITH_CUDA"] if GPU else ["-O3"],
    no_implicit_headers=True,
)


def softmax_int(self, dim, dtype=None):
    """Softmax of ``self`` (any shape) along ``dim``; contiguous, in ``dtype`` or in that of ``self``."""
    out = torch.empty(self.shape, dtype=dtype or self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    x = self.contiguous()
    n = x.shape[dim] if x.ndim else 1
    # Not from the strides: a dimension of size 1 may have any and still count as contiguous.
    inner = x.shape[dim:].numel() // n if x.ndim else 1
    outer = x.numel() // (n * inner)
    arguments = (KINDS.index(x.dtype), KINDS.index(out.dtype), x.data_ptr(), out.data_ptr(), outer, n, inner)
    if x.is_cuda:
        _built.softmax_cuda(*arguments, torch.cuda.current_stream().cuda_stream)
    else:
        _built.softmax_cpu(*arguments)
    return out
