"""cp_gather_indexer_k_quant_cache: the quantized keys of each sequence and their scales, out of a paged cache.

A block of the cache holds all its keys and then all their scales, as bytes. A token's sequence is found by a binary
search in the sequences' starts. Where everything is aligned to it, four bytes are copied as one word.
"""

import triton
import triton.language as tl


@triton.jit
def _gather(
    cache_ptr, key_ptr, scale_ptr, table_ptr, start_ptr, tokens, sequences, block_size,
    cache_block, table_sequence, table_column, start_stride,
    UNIT: tl.constexpr, KEY: tl.constexpr, SCALE: tl.constexpr, TOP: tl.constexpr, STEPS: tl.constexpr,
    TOKENS: tl.constexpr,
):  # fmt: skip
    """TOKENS tokens; KEY, SCALE and cache_block count units of UNIT bytes; TOP: the search's first step, 2^STEPS."""
    if UNIT == 4:
        cache_ptr = cache_ptr.to(tl.pointer_type(tl.int32))
        key_ptr = key_ptr.to(tl.pointer_type(tl.int32))
        scale_ptr = scale_ptr.to(tl.pointer_type(tl.int32))
    token = tl.program_id(0) * TOKENS + tl.arange(0, TOKENS)
    inside = token < tokens
    # A token's sequence is the number of later starts, start_ptr[1:], that are not behind it.
    sequence = tl.zeros([TOKENS], dtype=tl.int32)
    for step in tl.static_range(0, STEPS + 1):
        tried = sequence + (TOP >> step)
        start = tl.load(start_ptr + tried * start_stride, mask=tried <= sequences, other=2147483647)
        sequence = tl.where(start <= token, tried, sequence)
    inside = inside & (sequence < sequences)
    start = tl.load(start_ptr + sequence * start_stride, mask=inside, other=0)
    position = tl.where(inside, token - start, 0)
    column = position // block_size
    place = position - column * block_size
    at = table_ptr + sequence.to(tl.int64) * table_sequence + column * table_column
    block = tl.load(at, mask=inside, other=0).to(tl.int64) * cache_block
    token = token.to(tl.int64)
    i = tl.arange(0, KEY)
    key = tl.load(cache_ptr + (block + place * KEY)[:, None] + i[None, :], mask=inside[:, None], other=0)
    tl.store(key_ptr + (token * KEY)[:, None] + i[None, :], key, mask=inside[:, None])
    i = tl.arange(0, SCALE)
    scales = cache_ptr + block + block_size * KEY + place * SCALE
    scale = tl.load(scales[:, None] + i[None, :], mask=inside[:, None], other=0)
    tl.store(scale_ptr + (token * SCALE)[:, None] + i[None, :], scale, mask=inside[:, None])


def cp_gather_indexer_k_quant_cache(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    """kv_cache: (blocks, block_size, bytes), dst_k: (tokens, head), dst_scale: (tokens, scale bytes), all uint8.

    block_table: (sequences, blocks) int32; cu_seq_lens: (sequences + 1,) int32. Bytes of a token are powers of two.
    """
    tokens, sequences = dst_k.shape[0], cu_seq_lens.shape[0] - 1
    if tokens == 0 or sequences <= 0:
        return
    key, scale = dst_k.shape[1], dst_scale.shape[1]
    bits = kv_cache.data_ptr() | dst_k.data_ptr() | dst_scale.data_ptr() | kv_cache.stride(0) | scale
    unit = 4 if bits % 4 == 0 else 1
    steps = sequences.bit_length() - 1
    _gather[(triton.cdiv(tokens, 64),)](
        kv_cache, dst_k, dst_scale, block_table, cu_seq_lens, tokens, sequences, kv_cache.shape[1],
        kv_cache.stride(0) // unit, block_table.stride(0), block_table.stride(1), cu_seq_lens.stride(0),
        UNIT=unit, KEY=key // unit, SCALE=scale // unit, TOP=1 << steps, STEPS=steps, TOKENS=64, num_warps=4,
    )  # fmt: skip
