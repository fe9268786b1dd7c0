"""convert_fp8: a cache to float8_e4m3fn, divided by its scale, or back, multiplied by it. Bytes stand for the fp8."""

import torch
import triton
import triton.language as tl


@triton.jit
def _quantize(to_ptr, from_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(from_ptr + i, mask=i < n, other=0.0).to(tl.float32) * factor
    tl.store(to_ptr + i, x.to(tl.float8e4nv).to(tl.uint8, bitcast=True), mask=i < n)


@triton.jit
def _dequantize(to_ptr, from_ptr, scale, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(from_ptr + i, mask=i < n, other=0).to(tl.float8e4nv, bitcast=True).to(tl.float32) * scale
    tl.store(to_ptr + i, x.to(to_ptr.dtype.element_ty), mask=i < n)


def convert_fp8_quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    """src_cache: dense, any float dtype; dst_cache: as many float8_e4m3fn or bytes, saturated."""
    n = src_cache.numel()
    if n == 0:
        return
    _quantize[(triton.cdiv(n, 4096),)](
        dst_cache.view(torch.uint8), src_cache, 1.0 / float(scale), n, BLOCK=4096, num_warps=4
    )


def convert_fp8_dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    """src_cache: dense, float8_e4m3fn or bytes; dst_cache: as many of any float dtype."""
    n = src_cache.numel()
    if n == 0:
        return
    _dequantize[(triton.cdiv(n, 4096),)](
        dst_cache, src_cache.view(torch.uint8), float(scale), n, BLOCK=4096, num_warps=4
    )
