"""reshape_and_cache: puts each token's key and value into its slot of the paged caches; a negative slot is skipped.

Keys lie as (blocks, heads, head_size / x, block_size, x), values as (blocks, heads, head_size, block_size).
"""

import triton
import triton.language as tl


@triton.jit
def _store(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, tokens, width,
    key_stride, value_stride, key_block_stride, value_block_stride,
    SIZE: tl.constexpr, X: tl.constexpr, TOKENS: tl.constexpr, BLOCK: tl.constexpr,
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
        # Element i of a token lies at i // X, place, i % X of a key block and at i, place of a value block.
        key_at = key_cache_ptr + block * key_block_stride + i // X * (SIZE * X) + place * X + i % X
        value_at = value_cache_ptr + block * value_block_stride + i * SIZE + place
        tl.store(key_at, key, mask=inside)
        tl.store(value_at, value, mask=inside)


def reshape_and_cache(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    """key, value: (tokens, heads, head_size), tokens at any distance; slot_mapping: int64, block * block_size + place.

    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale.
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
    _store[(triton.cdiv(tokens, per),)](
        key, value, key_cache, value_cache, slot_mapping, tokens, width,
        key.stride(0), value.stride(0), key_cache.stride(0), value_cache.stride(0),
        SIZE=block_size, X=x, TOKENS=per, BLOCK=block,
    )  # fmt: skip
