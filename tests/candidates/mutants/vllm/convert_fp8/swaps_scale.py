# outcome: wrong value
# breaks: It multiplies by the scale on the way to fp8 and divides by it on the way back.


def convert_fp8_quantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_((src_cache.float() * scale).clamp(-448, 448))


def convert_fp8_dequantize(dst_cache, src_cache, scale, kv_cache_dtype):
    dst_cache.copy_(src_cache.float() / scale)
