"""cublasSdot_v2 in CUDA C++ through cupy: result[0] = sum of x[i] * y[i] over n elements at given increments.

Many blocks sum a share each, one block sums the shares: no atomics, so two calls agree to the last bit.
"""

import cupy
import torch

CODE = r"""
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

extern "C" __global__ void share(const float *x, long long incx, const float *y, long long incy, long long n,
                                 float *shares) {
  float sum = 0;
  for (long long i = blockIdx.x * (long long)THREADS + threadIdx.x; i < n; i += (long long)BLOCKS * THREADS)
    sum += x[i * incx] * y[i * incy];
  sum = block_sum(sum);
  if (threadIdx.x == 0) shares[blockIdx.x] = sum;
}

extern "C" __global__ void add_up(const float *shares, float *result) {
  float sum = 0;
  for (int i = threadIdx.x; i < BLOCKS; i += THREADS) sum += shares[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *result = sum;
}
"""

THREADS, BLOCKS = 256, 1024
_module = cupy.RawModule(code=CODE, options=("-std=c++17",))
_share, _add_up = _module.get_function("share"), _module.get_function("add_up")


def cublasSdot_v2(n, x, incx, y, incy, result):
    """x, y: 1-D float32 storage; a negative increment walks from the far end: element i lies at (i + 1 - n) * inc."""
    shares = torch.empty(BLOCKS, dtype=x.dtype, device=x.device)
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        x_at, y_at = _start(x, n, incx), _start(y, n, incy)
        _share((BLOCKS,), (THREADS,), (x_at, incx, y_at, incy, n, shares.data_ptr()))
        _add_up((1,), (THREADS,), (shares.data_ptr(), result.data_ptr()))


def _start(vector, n, increment):
    """The address of element 0."""
    first = (1 - n) * increment if increment < 0 and n > 0 else 0
    return vector.data_ptr() + first * vector.element_size()
