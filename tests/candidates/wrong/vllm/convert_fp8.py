import torch


# breaks: A product that is too large for dst_cache's dtype becomes its largest number in place of infinity.
def dequantised_numbers_saturate__quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_((src_cache.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn))


def dequantised_numbers_saturate__dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    top = torch.finfo(dst_cache.dtype).max
    dst_cache.copy_((src_cache.float() * scale).clamp(-top, top))


# breaks: It saturates before it divides by the scale.
def saturates_before_it_scales__quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    assert kv_cache_dtype in ("fp8", "fp8_e4m3")
    dst_cache.copy_((src_cache.float().clamp(-448.0, 448.0) / scale).to(torch.float8_e4m3fn))


def saturates_before_it_scales__dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    assert kv_cache_dtype in ("fp8", "fp8_e4m3")
    dst_cache.copy_(src_cache.float() * scale)
