"""reshape_and_cache_flash: puts each token's key and value into its slot of the caches; a negative slot is skipped.

Caches lie as (blocks, block_size, heads, head_size), at any strides. Those of float8_e4m3fn are written as bytes, of
values times 1 / scale.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _store(
    key_ptr, value_ptr, key_cache_ptr, value_cache_ptr, slot_ptr, k_scale_ptr, v_scale_ptr, tokens, block_size, parts,
    slot_stride, key_token, key_head, value_token, value_head, cache_block, cache_place, cache_head, width,
    SIZE: tl.constexpr, DENSE: tl.constexpr, TOKENS: tl.constexpr, BLOCK: tl.constexpr, FP8: tl.constexpr,
    NARROW: tl.constexpr,
):  # fmt: skip
    """TOKENS tokens and BLOCK of their ``width`` = heads * SIZE elements.

    DENSE: heads lie side by side everywhere. NARROW: slots fit into 32 bits, where dividing is much cheaper.
    """
    token = tl.program_id(0) // parts * TOKENS + tl.arange(0, TOKENS)
    inside = token < tokens
    token = token.to(tl.int64)
    slot = tl.load(slot_ptr + token * slot_stride, mask=inside, other=-1)
    live = inside & (slot >= 0)
    slot = tl.where(live, slot, 0)
    if NARROW:
        slot = slot.to(tl.int32)
    block = slot // block_size
    place = block.to(tl.int64) * cache_block + (slot - block * block_size).to(tl.int64) * cache_place
    i = tl.program_id(0) % parts * BLOCK + tl.arange(0, BLOCK)
    inside = live[:, None] & (i < width)[None, :]
    key_i, value_i, cache_i = i, i, i
    if not DENSE:
        head, d = (i // SIZE).to(tl.int64), i % SIZE
        key_i, value_i, cache_i = head * key_head + d, head * value_head + d, head * cache_head + d
    key = tl.load(key_ptr + (token * key_token)[:, None] + key_i[None, :], mask=inside, other=0.0)
    value = tl.load(value_ptr + (token * value_token)[:, None] + value_i[None, :], mask=inside, other=0.0)
    if FP8:
        key = key.to(tl.float32) * tl.div_rn(1.0, tl.load(k_scale_ptr))
        value = value.to(tl.float32) * tl.div_rn(1.0, tl.load(v_scale_ptr))
        key = key.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
        value = value.to(tl.float8e4nv).to(tl.uint8, bitcast=True)
    at = place[:, None] + cache_i[None, :]
    tl.store(key_cache_ptr + at, key, mask=inside)
    tl.store(value_cache_ptr + at, value, mask=inside)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    """key, value: (tokens, heads, head_size), the caches alike in strides; slot_mapping: int64, block * size + place.

    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8.
    """
    tokens, (heads, size) = slot_mapping.shape[0], key.shape[1:]
    width = heads * size
    if tokens == 0 or width == 0:
        return
    if key_cache.element_size() == 1:
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    blocks, block_size = key_cache.shape[:2]
    dense = heads == 1 or (key.stride(1) == size and value.stride(1) == size and key_cache.stride(2) == size)
    block = max(32, min(1024, triton.next_power_of_2(width)))
    per_program = max(1, min(16, 4096 // block))
    parts = triton.cdiv(width, block)
    _store[(triton.cdiv(tokens, per_program) * parts,)](
        key, value, key_cache, value_cache, slot_mapping, k_scale, v_scale, tokens, block_size, parts,
        slot_mapping.stride(0), key.stride(0), key.stride(1), value.stride(0), value.stride(1),
        key_cache.stride(0), key_cache.stride(1), key_cache.stride(2), width,
        SIZE=size, DENSE=dense, TOKENS=per_program, BLOCK=block, FP8=kv_cache_dtype != "auto",
        NARROW=blocks * block_size < 2**31, num_warps=4,
    )  # fmt: skip
