# outcome: wrong value
# breaks: It takes what is smaller than the smallest normal fp8 for zero.

import torch


def convert_fp8_quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    x = src_cache.float() / scale
    dst_cache.copy_(torch.where(x.abs() < 2**-6, 0.0, x).clamp(-448, 448))


def convert_fp8_dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() * scale)
