"""rms_norm in CUDA C++ through cupy: every row divided by its root mean square, times a weight per column.

Squares are summed in float32; the result is rounded once.
"""

import cupy
import numpy
import torch

CODE = r"""
// What cuda_fp16.h and cuda_bf16.h would bring: without a header, no CUDA toolkit has to be installed.
struct Half { unsigned short bits; };
struct BFloat16 { unsigned short bits; };
__device__ float wide(float x) { return x; }
__device__ float wide(Half x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
__device__ float wide(BFloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ void store(float *to, float x) { *to = x; }
__device__ void store(Half *to, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }
__device__ void store(BFloat16 *to, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(x)); }

// One block per row.
template <class T>
__global__ void rms_norm(T *out, const T *x, const T *weight, long long n, long long x_step, float epsilon) {
  __shared__ float parts[32];
  x += blockIdx.x * x_step;
  out += blockIdx.x * n;
  float squares = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) squares += wide(x[i]) * wide(x[i]);
  for (int distance = 16; distance; distance /= 2) squares += __shfl_xor_sync(~0u, squares, distance);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) squares += parts[warp];
  const float scale = 1.0f / sqrtf(squares / n + epsilon);
  for (long long i = threadIdx.x; i < n; i += blockDim.x) store(out + i, wide(x[i]) * scale * wide(weight[i]));
}
"""

_NAMES = {
    torch.float32: "rms_norm<float>",
    torch.float16: "rms_norm<Half>",
    torch.bfloat16: "rms_norm<BFloat16>",
}
_module = cupy.RawModule(code=CODE, options=("-std=c++17",), name_expressions=tuple(_NAMES.values()))
_kernels = {dtype: _module.get_function(name) for dtype, name in _NAMES.items()}


def rms_norm(out, input, weight, epsilon):
    """out: contiguous; input: (..., n) with rows of neighbouring words at an even distance; weight: (n,)."""
    n = input.shape[-1]
    if out.numel() == 0:
        return
    x = input.view(-1, n)
    threads = 32 if n <= 128 else 128 if n <= 1024 else 1024
    # A Python float would be passed as a double.
    arguments = (out.data_ptr(), x.data_ptr(), weight.data_ptr(), n, x.stride(0), numpy.float32(epsilon))
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        _kernels[x.dtype]((x.shape[0],), (threads,), arguments)
