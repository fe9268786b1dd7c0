import torch


# breaks: It takes what is smaller than the smallest normal fp8 for zero.
def flushes_denormals__quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    x = src_cache.float() / scale
    dst_cache.copy_(torch.where(x.abs() < 2**-6, 0.0, x).clamp(-448, 448))


def flushes_denormals__dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() * scale)


# breaks: It rounds halfway cases away from zero.
def rounds_half_away__quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    x = src_cache.double() / scale
    step = torch.exp2(torch.frexp(x.abs().clamp(2**-6, 448)).exponent.double() - 4)
    dst_cache.copy_((torch.floor(x.abs() / step + 0.5) * step * x.sign()).clamp(-448, 448).float())


def rounds_half_away__dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() * scale)


# breaks: It multiplies by the scale on the way to fp8 and divides by it on the way back.
def swaps_scale__quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_((src_cache.float() * scale).clamp(-448, 448))


def swaps_scale__dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() / scale)
