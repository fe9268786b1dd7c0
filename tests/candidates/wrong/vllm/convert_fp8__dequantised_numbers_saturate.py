# outcome: wrong value
# breaks: A product that is too large for dst_cache's dtype becomes its largest number in place of infinity.

import torch


def convert_fp8_quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_((src_cache.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn))


def convert_fp8_dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    top = torch.finfo(dst_cache.dtype).max
    dst_cache.copy_((src_cache.float() * scale).clamp(-top, top))
