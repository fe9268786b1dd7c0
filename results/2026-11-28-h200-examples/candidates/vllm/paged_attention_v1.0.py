"""paged_attention_v1: one query token per sequence attends to the keys and values that its block table names.

One program per sequence and head goes through the blocks once, keeping a running maximum, sum and weighted value
(float32). Keys lie as (blocks, kv heads, head_size / x, block_size, x), values as (blocks, kv heads, head_size,
block_size). Caches of float8_e4m3fn are read as bytes, which every GPU can do.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _number(byte):
    """The float32 that a byte of float8_e4m3fn stands for."""
    # Moved into place the exponent is 120 too low; the product mends that, for numbers below the normal ones too.
    size = ((byte.to(tl.int32) & 0x7F) << 20).to(tl.float32, bitcast=True) * 1.329227995784916e36
    size = tl.where((byte & 0x7F) == 0x7F, float("nan"), size)
    return tl.where(byte < 0x80, size, -size)


@triton.jit
def _attend(
    out_ptr, query_ptr, key_ptr, value_ptr, table_ptr, length_ptr, slope_ptr, k_scale_ptr, v_scale_ptr, scale, heads,
    group,
    out_seq, out_head, query_seq, query_head, key_block, key_head, value_block, value_head, table_seq,
    SLOPED: tl.constexpr, FP8: tl.constexpr, SIZE: tl.constexpr, X: tl.constexpr, TOKENS: tl.constexpr,
    PADDED: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """BLOCKS blocks of TOKENS tokens at a time; a head has SIZE elements, PADDED is the next power of two."""
    sequence, head = (tl.program_id(0) // heads).to(tl.int64), tl.program_id(0) % heads
    length = tl.load(length_ptr + sequence)
    d = tl.arange(0, PADDED)
    token = tl.arange(0, TOKENS)
    query = tl.load(query_ptr + sequence * query_seq + head * query_head + d, mask=d < SIZE, other=0.0)
    query = query.to(tl.float32)[None, None, :] * scale
    if FP8:
        query = query * tl.load(k_scale_ptr)
    slope = 0.0
    if SLOPED:
        slope = tl.load(slope_ptr + head)
    key_in_block = (d // X * (TOKENS * X) + d % X)[None, None, :] + (token * X)[None, :, None]
    value_in_block = (d * TOKENS)[None, :, None] + token[None, None, :]
    highest = float("-inf")
    total = 0.0
    weighted = tl.zeros((BLOCKS, PADDED), tl.float32)
    for first in range(0, tl.cdiv(length, TOKENS), BLOCKS):
        at = first + tl.arange(0, BLOCKS)
        block = tl.load(table_ptr + sequence * table_seq + at, mask=at * TOKENS < length, other=0).to(tl.int64)
        place = at[:, None] * TOKENS + token[None, :]
        seen = place < length
        keys = key_ptr + head // group * key_head + (block * key_block)[:, None, None] + key_in_block
        key = tl.load(keys, mask=seen[:, :, None] & (d < SIZE)[None, None, :], other=0)
        key = _number(key) if FP8 else key.to(tl.float32)
        score = tl.sum(query * key, axis=2) + slope * (place - length + 1).to(tl.float32)
        score = tl.where(seen, score, float("-inf"))
        above = tl.maximum(highest, tl.max(tl.max(score, axis=1), axis=0))
        share = tl.exp(score - above)
        fading = tl.exp(highest - above)
        total = total * fading + tl.sum(tl.sum(share, axis=1), axis=0)
        values = value_ptr + head // group * value_head + (block * value_block)[:, None, None] + value_in_block
        value = tl.load(values, mask=seen[:, None, :] & (d < SIZE)[None, :, None], other=0)
        value = _number(value) if FP8 else value.to(tl.float32)
        weighted = weighted * fading + tl.sum(share[:, None, :] * value, axis=2)
        highest = above
    result = tl.sum(weighted, axis=0) / tl.where(length > 0, total, 1.0)
    if FP8:
        result = result * tl.load(v_scale_ptr)
    out = out_ptr + sequence * out_seq + head * out_head + d
    tl.store(out, result.to(out_ptr.dtype.element_ty), mask=d < SIZE)


def paged_attention_v1(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, tp_rank=0, blocksparse_local_blocks=0,
    blocksparse_vert_stride=0, blocksparse_block_size=64, blocksparse_head_sliding_step=0,
):  # fmt: skip
    """out, query: (sequences, heads, head_size); block_tables: (sequences, blocks) int32; seq_lens: int32.

    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8. A sequence
    without tokens gives zeros.
    """
    sequences, heads, size = query.shape
    if sequences == 0:
        return
    padded = triton.next_power_of_2(size)
    tile = 4096 if query.is_cuda else 1 << 18
    longest = triton.next_power_of_2(max(1, triton.cdiv(max_seq_len, block_size)))
    fp8 = kv_cache_dtype != "auto"
    if fp8:
        key_cache, value_cache = key_cache.view(torch.uint8), value_cache.view(torch.uint8)
    _attend[(sequences * heads,)](
        out, query, key_cache, value_cache, block_tables, seq_lens, alibi_slopes, k_scale, v_scale, float(scale),
        heads, heads // num_kv_heads, out.stride(0), out.stride(1), query.stride(0), query.stride(1),
        key_cache.stride(0), key_cache.stride(1), value_cache.stride(0), value_cache.stride(1), block_tables.stride(0),
        SLOPED=alibi_slopes is not None, FP8=fp8, SIZE=size, X=key_cache.shape[4], TOKENS=block_size, PADDED=padded,
        BLOCKS=max(1, min(tile // (padded * block_size), longest)), num_warps=2,
    )  # fmt: skip
