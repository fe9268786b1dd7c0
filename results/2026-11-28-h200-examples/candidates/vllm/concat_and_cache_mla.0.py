"""concat_and_cache_mla: puts each token's latent and its rotary part side by side into its slot of the paged cache.

A negative slot is skipped. Caches of float8_e4m3fn are written as bytes, of values times 1 / scale.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _copy(
    from_ptr, to_ptr, token, place, live, factor, from_token, from_element, to_element,
    FIRST: tl.constexpr, LENGTH: tl.constexpr, BLOCK: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    """LENGTH elements of each token to the elements from FIRST on of its place in the cache."""
    for start in tl.static_range(0, LENGTH, BLOCK):
        i = start + tl.arange(0, BLOCK)
        inside = live[:, None] & (i < LENGTH)[None, :]
        x = tl.load(from_ptr + token[:, None] * from_token + (i * from_element)[None, :], mask=inside, other=0.0)
        if FP8:
            x = (x.to(tl.float32) * factor).to(tl.float8e4nv).to(tl.uint8, bitcast=True)
        tl.store(to_ptr + place[:, None] + ((i + FIRST) * to_element)[None, :], x, mask=inside)


@triton.jit
def _store(
    latent_ptr, rope_ptr, cache_ptr, slot_ptr, scale_ptr, tokens, block_size, slot_stride,
    latent_token, latent_element, rope_token, rope_element, cache_block, cache_place, cache_element,
    RANK: tl.constexpr, ROPE: tl.constexpr, RANK_BLOCK: tl.constexpr, ROPE_BLOCK: tl.constexpr,
    TOKENS: tl.constexpr, FP8: tl.constexpr, NARROW: tl.constexpr,
):  # fmt: skip
    """TOKENS tokens; NARROW: slots fit into 32 bits, where dividing is much cheaper."""
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    inside = token < tokens
    token = token.to(tl.int64)
    slot = tl.load(slot_ptr + token * slot_stride, mask=inside, other=-1)
    live = inside & (slot >= 0)
    slot = tl.where(live, slot, 0)
    if NARROW:
        slot = slot.to(tl.int32)
    block = slot // block_size
    place = block.to(tl.int64) * cache_block + (slot - block * block_size).to(tl.int64) * cache_place
    factor = 1.0
    if FP8:
        factor = tl.div_rn(1.0, tl.load(scale_ptr))
    _copy(
        latent_ptr, cache_ptr, token, place, live, factor, latent_token, latent_element, cache_element,
        0, RANK, RANK_BLOCK, FP8,
    )  # fmt: skip
    _copy(
        rope_ptr, cache_ptr, token, place, live, factor, rope_token, rope_element, cache_element,
        RANK, ROPE, ROPE_BLOCK, FP8,
    )  # fmt: skip


def concat_and_cache_mla(kv_c, k_pe, kv_cache, slot_mapping, kv_cache_dtype, scale):
    """kv_c: (tokens, rank), k_pe: (tokens, rope), kv_cache: (blocks, block_size, rank + rope); slot_mapping: int64.

    kv_cache_dtype 'auto' keeps the dtype, so the scale has nothing to scale; otherwise the cache is fp8.
    """
    tokens, rank, rope = slot_mapping.shape[0], kv_c.shape[1], k_pe.shape[1]
    if tokens == 0 or rank + rope == 0:
        return
    cache = kv_cache.view(torch.uint8) if kv_cache.element_size() == 1 else kv_cache
    rank_block = min(1024, triton.next_power_of_2(max(rank, 1)))
    rope_block = min(1024, triton.next_power_of_2(max(rope, 1)))
    per_program = max(1, min(16, 4096 // max(rank_block, rope_block)))
    _store[(triton.cdiv(tokens, per_program),)](
        kv_c, k_pe, cache, slot_mapping, scale, tokens, kv_cache.shape[1], slot_mapping.stride(0),
        kv_c.stride(0), kv_c.stride(1), k_pe.stride(0), k_pe.stride(1),
        cache.stride(0), cache.stride(1), cache.stride(2),
        RANK=rank, ROPE=rope, RANK_BLOCK=rank_block, ROPE_BLOCK=rope_block, TOKENS=per_program,
        FP8=kv_cache_dtype != "auto", NARROW=kv_cache.shape[0] * kv_cache.shape[1] < 2**31, num_warps=4,
    )  # fmt: skip
