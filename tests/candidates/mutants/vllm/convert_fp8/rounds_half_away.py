# outcome: wrong value
# breaks: It rounds halfway cases away from zero.

import torch


def convert_fp8_quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    x = src_cache.double() / scale
    step = torch.exp2(torch.frexp(x.abs().clamp(2**-6, 448)).exponent.double() - 4)
    dst_cache.copy_((torch.floor(x.abs() / step + 0.5) * step * x.sign()).clamp(-448, 448).float())


def convert_fp8_dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() * scale)
