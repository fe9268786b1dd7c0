"""reshape_and_cache: puts each token's key and value into its slot of the paged caches; a negative slot is skipped.

Keys lie as (blocks, heads, head_size / x, block_size, x), values as (blocks, heads, head_size, block_size). Caches of
float8_e4m3fn are written as bytes, which every GPU can make.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _e4m3(x):
    """The byte of float8_e4m3fn nearest to float32 x, ties to even, saturated."""
    size = tl.minimum(tl.abs(x), 448.0)
    bits = size.to(tl.int32, bitcast=True)
    # Three bits of fraction stay; the exponent's bias falls from 127 to 7.
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    # Below the smallest normal number codes count 2^-9, which is how far numbers next to 2^14 are apart.
    tiny = (size + 16384.0).to(tl.int32, bitcast=True) - 0x46800000
    code = tl.where(x != x, 0x7F, tl.where(size < 0.015625, tiny, normal))
    return (code | ((x.to(tl.int32, bitcast=True) >> 24) & 0x80)).to(tl.uint8)


@triton.jit
def _store(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, k_scale_ptr, v_scale_ptr, tokens, width,
    key_stride, value_stride, key_block_stride, value_block_stride,
    SIZE: tl.constexpr, X: tl.constexpr, FP8: tl.constexpr, TOKENS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """TOKENS tokens into blocks of SIZE, BLOCK of the ``width`` = heads * head_size elements of each at a time."""
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)[:, None]
    slot = tl.load(slot_ptr + token, mask=token < tokens, other=-1)
    block, place = slot // SIZE, slot % SIZE
    for first in range(0, width, BLOCK):
        i = first + tl.arange(0, BLOCK)[None, :]
        inside = (i < width) & (slot >= 0)
        key = tl.load(key_ptr + token * key_stride + i, mask=inside)
        value = tl.load(value_ptr + token * value_stride + i, mask=inside)
        if FP8:
            key = _e4m3(key.to(tl.float32) / tl.load(k_scale_ptr))
            value = _e4m3(value.to(tl.float32) / tl.load(v_scale_ptr))
        # Element i of a token lies at i // X, place, i % X of a key block and at i, place of a value block.
        key_at = key_cache_ptr + block * key_block_stride + i // X * (SIZE * X) + place * X + i % X
        value_at = value_cache_ptr + block * value_block_stride + i * SIZE + place
        tl.store(key_at, key, mask=inside)
        tl.store(value_at, value, mask=inside)


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    """key, value: (tokens, heads, head_size), tokens at any distance; slot_mapping: int64, block * block_size + place.

    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8.
    """
    tokens = slot_mapping.numel()
    if tokens == 0:
        return
    _, heads, head_size = key.shape
    block_size, x = key_cache.shape[3:]
    width = heads * head_size
    tile = 1024 if key.is_cuda else 1 << 18
    block = min(triton.next_power_of_2(width), tile)
    per = max(1, min(tile // block, triton.next_power_of_2(tokens)))
    fp8 = kv_cache_dtype != "auto"
    if fp8:
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    _store[(triton.cdiv(tokens, per),)](
        key, value, key_cache, value_cache, slot_mapping, k_scale, v_scale, tokens, width,
        key.stride(0), value.stride(0), key_cache.stride(0), value_cache.stride(0),
        SIZE=block_size, X=x, FP8=fp8, TOKENS=per, BLOCK=block,
    )  # fmt: skip
