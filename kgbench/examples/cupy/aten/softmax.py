"""softmax.int in CUDA C++ through cupy: maximum, sum and result in three passes along a dimension of any stride.

Numbers are float32 inside (float64 where that is asked for), rounded once when stored.
"""

import cupy
import torch

CODE = r"""
// What cuda_fp16.h and cuda_bf16.h would bring: without a header, no CUDA toolkit has to be installed.
struct Half { unsigned short bits; };
struct BFloat16 { unsigned short bits; };
__device__ float wide(float x) { return x; }
__device__ float wide(Half x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
__device__ float wide(BFloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ void store(float *to, float x) { *to = x; }
__device__ void store(double *to, double x) { *to = x; }
__device__ void store(Half *to, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }
__device__ void store(BFloat16 *to, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }

struct Highest {
  static __device__ float none() { return __int_as_float(0xff800000); }  // minus infinity
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  static __device__ float none() { return 0; }
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
  value = Combine::none();
  for (int warp = 0; warp < blockDim.x / 32; ++warp) value = combine(value, parts[warp]);
  return value;
}

// One block per slice of n elements, `inner` apart. A NaN does not count as the highest, but goes through the sum.
template <class From, class To>
__global__ void softmax(const From *x, To *out, long long n, long long inner) {
  const long long slice = blockIdx.x, first = slice / inner * n * inner + slice % inner;
  using Wide = typename Arithmetic<To>::Wide;
  float highest = Highest::none();
  Wide total = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) highest = fmaxf(highest, wide(x[first + i * inner]));
  highest = over_block(highest, Highest());
  for (long long i = threadIdx.x; i < n; i += blockDim.x) total += exp(Wide(wide(x[first + i * inner])) - highest);
  total = over_block(total, Sum());
  for (long long i = threadIdx.x; i < n; i += blockDim.x)
    store(out + first + i * inner, exp(Wide(wide(x[first + i * inner])) - highest) / total);
}
"""

_TYPES = {torch.float32: "float", torch.float16: "Half", torch.bfloat16: "BFloat16"}
_RESULTS = {**_TYPES, torch.float64: "double"}
_NAMES = {(a, b): f"softmax<{_TYPES[a]}, {_RESULTS[b]}>" for a in _TYPES for b in _RESULTS}
_module = cupy.RawModule(code=CODE, options=("-std=c++17",), name_expressions=tuple(_NAMES.values()))
_kernels = {dtypes: _module.get_function(name) for dtypes, name in _NAMES.items()}


def softmax_int(self, dim, dtype=None):
    """Softmax of ``self`` (any shape) along ``dim``; contiguous, in ``dtype`` or in that of ``self``."""
    out = torch.empty(self.shape, dtype=dtype or self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    x = self.contiguous()
    n = x.shape[dim] if x.ndim else 1
    # Not from the strides: a dimension of size 1 may have any and still count as contiguous.
    inner = x.shape[dim:].numel() // n if x.ndim else 1
    threads = 32 if n <= 128 else 128 if n <= 1024 else 1024
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        _kernels[x.dtype, out.dtype]((x.numel() // n,), (threads,), (x.data_ptr(), out.data_ptr(), n, inner))
    return out
