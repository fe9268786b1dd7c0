"""paged_attention_v1: one query token per sequence attends to the keys and values that its block table names.

A program has one part of a sequence's tokens and one key head, with up to 64 query heads that share it, so that it
multiplies matrices. It keeps a running maximum, sum and weighted value in float32 (base 2). Where sequences and heads
give too few programs, there are several parts, which a second kernel merges.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_tokens(
    query, most, total, weighted, first, length, table_ptr, key_ptr, value_ptr, table_step, key_block, value_block,
    scale, slope,
    SIZE: tl.constexpr, X: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, TOKENS: tl.constexpr,
    SLOPED: tl.constexpr, PARTLY: tl.constexpr,
):  # fmt: skip
    """Adds TOKENS tokens from ``first`` on; PARTLY: the sequence may end among them. Blocks have SIZE tokens."""
    token = first + tl.arange(0, TOKENS)
    place = token % SIZE
    d = tl.arange(0, PADDED)
    # Whole blocks are read; what lies behind the sequence's end is thrown away later.
    real = token // SIZE * SIZE < length
    table_at = table_ptr + token // SIZE * table_step
    block = (tl.load(table_at, mask=real, other=0) if PARTLY else tl.load(table_at)).to(tl.int64)
    key_at = key_ptr + (block * key_block + place * X)[:, None] + ((d // X) * (SIZE * X) + d % X)[None, :]
    value_at = value_ptr + (d * SIZE)[:, None] + (block * value_block + place)[None, :]
    if PARTLY:
        key = tl.load(key_at, mask=real[:, None] & (d < HEAD)[None, :], other=0.0)
        value = tl.load(value_at, mask=(d < HEAD)[:, None] & real[None, :], other=0.0)
    elif HEAD != PADDED:
        key = tl.load(key_at, mask=(d < HEAD)[None, :], other=0.0)
        value = tl.load(value_at, mask=(d < HEAD)[:, None], other=0.0)
    else:
        key = tl.load(key_at)
        value = tl.load(value_at)
    key, value = key.to(query.dtype), value.to(query.dtype)
    score = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
    if SLOPED:
        score += slope[:, None] * (token - length + 1).to(tl.float32)[None, :]
    if PARTLY:
        score = tl.where((token < length)[None, :], score, float("-inf"))
        # A share of 0 is not enough: the cache may hold NaN there.
        value = tl.where((token < length)[None, :], value, 0.0)
    above = tl.maximum(most, tl.max(score, axis=1))
    fading = tl.exp2(most - above)
    share = tl.exp2(score - above[:, None])
    total = total * fading + tl.sum(share, axis=1)
    weighted = weighted * fading[:, None]
    weighted = tl.dot(share.to(query.dtype), tl.trans(value), weighted, input_precision="ieee")
    return above, total, weighted


@triton.jit
def _attend(
    out_ptr, part_ptr, most_ptr, total_ptr, query_ptr, key_ptr, value_ptr, table_ptr, length_ptr, slope_ptr,
    k_scale_ptr, v_scale_ptr, scale, heads, kv_heads, group, chunks, parts, out_seq, out_head, query_seq, query_head,
    key_block, key_head, value_block, value_head, table_seq, table_step,
    SIZE: tl.constexpr, X: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, QUERIES: tl.constexpr,
    TOKENS: tl.constexpr, SLOPED: tl.constexpr, FP8: tl.constexpr, SINGLE: tl.constexpr,
):  # fmt: skip
    """One part of the tokens for QUERIES of the ``group`` query heads of a key head; SINGLE: there is one part only."""
    # One axis: the others of a grid end at 65,535.
    part, rest = tl.program_id(0) % parts, tl.program_id(0) // parts
    chunk, rest = rest % chunks, rest // chunks
    kv_head, sequence = (rest % kv_heads).to(tl.int64), (rest // kv_heads).to(tl.int64)
    length = tl.load(length_ptr + sequence)
    tiles = tl.cdiv(length, TOKENS)
    begin = part * tl.cdiv(tiles, parts)
    end = tl.minimum(begin + tl.cdiv(tiles, parts), tiles)
    # A sequence without tokens has its first part too, which gives zeros.
    if (begin < end) | (part == 0):
        i = chunk * QUERIES + tl.arange(0, QUERIES)
        head = rest % kv_heads * group + i
        d = tl.arange(0, PADDED)
        inside = (i < group)[:, None] & (d < HEAD)[None, :]
        query_at = query_ptr + sequence * query_seq + (head.to(tl.int64) * query_head)[:, None] + d[None, :]
        query = tl.load(query_at, mask=inside, other=0.0)
        LOG2_E: tl.constexpr = 1.4426950408889634
        scale = scale * LOG2_E
        v_scale = 1.0
        if FP8:
            scale = scale * tl.load(k_scale_ptr)
            v_scale = v_scale * tl.load(v_scale_ptr)
        slope = tl.zeros([QUERIES], dtype=tl.float32)
        if SLOPED:
            slope = tl.load(slope_ptr + head, mask=i < group, other=0.0) * LOG2_E
        key_ptr += kv_head * key_head
        value_ptr += kv_head * value_head
        table_ptr += sequence * table_seq
        most = tl.full([QUERIES], float("-inf"), dtype=tl.float32)
        total = tl.zeros([QUERIES], dtype=tl.float32)
        weighted = tl.zeros([QUERIES, PADDED], dtype=tl.float32)
        full = length // TOKENS
        for tile in range(begin, tl.minimum(end, full)):
            most, total, weighted = _add_tokens(
                query, most, total, weighted, tile * TOKENS, length, table_ptr, key_ptr, value_ptr, table_step,
                key_block, value_block, scale, slope, SIZE, X, HEAD, PADDED, TOKENS, SLOPED, False,
            )  # fmt: skip
        if end > full:
            most, total, weighted = _add_tokens(
                query, most, total, weighted, full * TOKENS, length, table_ptr, key_ptr, value_ptr, table_step,
                key_block, value_block, scale, slope, SIZE, X, HEAD, PADDED, TOKENS, SLOPED, True,
            )  # fmt: skip
        if SINGLE:
            result = weighted * v_scale / tl.where(length > 0, total, 1.0)[:, None]
            out_at = out_ptr + sequence * out_seq + (head.to(tl.int64) * out_head)[:, None] + d[None, :]
            tl.store(out_at, result.to(out_ptr.dtype.element_ty), mask=inside)
        else:
            at = (sequence * heads + head) * parts + part
            tl.store(part_ptr + (at * PADDED)[:, None] + d[None, :], weighted * v_scale, mask=(i < group)[:, None])
            tl.store(most_ptr + at, most, mask=i < group)
            tl.store(total_ptr + at, total, mask=i < group)


@triton.jit
def _merge(
    out_ptr, part_ptr, most_ptr, total_ptr, length_ptr, heads, parts, out_seq, out_head,
    HEAD: tl.constexpr, PADDED: tl.constexpr, TOKENS: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One head of one sequence: its parts, of which there are up to PARTS, weighted by the shares of their sums."""
    row = tl.program_id(0).to(tl.int64)
    sequence, head = row // heads, row % heads
    length = tl.load(length_ptr + sequence)
    tiles = tl.cdiv(length, TOKENS)
    used = tl.cdiv(tiles, tl.maximum(tl.cdiv(tiles, parts), 1))
    i = tl.arange(0, PARTS)
    d = tl.arange(0, PADDED)
    at = row * parts + i
    most = tl.load(most_ptr + at, mask=i < used, other=float("-inf"))
    total = tl.load(total_ptr + at, mask=i < used, other=0.0)
    weighted = tl.load(part_ptr + (at * PADDED)[:, None] + d[None, :], mask=(i < used)[:, None], other=0.0)
    # A sequence without tokens gives zeros, not NaN.
    share = tl.exp2(most - tl.where(length > 0, tl.max(most, axis=0), 0.0))
    total = tl.where(length > 0, tl.sum(total * share, axis=0), 1.0)
    result = tl.sum(weighted * share[:, None], axis=0) / total
    out_at = out_ptr + sequence * out_seq + head * out_head + d
    tl.store(out_at, result.to(out_ptr.dtype.element_ty), mask=d < HEAD)


def paged_attention_v1(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, tp_rank=0, blocksparse_local_blocks=0,
    blocksparse_vert_stride=0, blocksparse_block_size=64, blocksparse_head_sliding_step=0,
):  # fmt: skip
    """out, query: (sequences, heads, head_size); block_tables: (sequences, blocks) int32; seq_lens: int32.

    Keys lie as (blocks, kv heads, head_size / x, block_size, x), values as (blocks, kv heads, head_size, block_size).
    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8. A sequence
    without tokens gives zeros.
    """
    sequences, heads, size = query.shape
    if out.numel() == 0:
        return
    fp8 = kv_cache_dtype != "auto"
    if fp8:
        key_cache, value_cache = key_cache.view(torch.float8_e4m3fn), value_cache.view(torch.float8_e4m3fn)
    padded = max(16, triton.next_power_of_2(size))
    group = heads // num_kv_heads
    queries = min(64, max(16, triton.next_power_of_2(group)))
    chunks = triton.cdiv(group, queries)
    tokens = 64 if padded <= 256 else 32
    programs = sequences * num_kv_heads * chunks
    # About 6 programs for each of 132 multiprocessors, but no parts of less than 256 tokens.
    parts = max(1, min(triton.cdiv(792, programs), triton.cdiv(max_seq_len, 256), 64))
    sums = most = total = out
    if parts > 1:
        sums = torch.empty((sequences, heads, parts, padded), dtype=torch.float32, device=query.device)
        most = torch.empty((sequences, heads, parts), dtype=torch.float32, device=query.device)
        total = torch.empty_like(most)
    _attend[(programs * parts,)](
        out, sums, most, total, query, key_cache, value_cache, block_tables, seq_lens, alibi_slopes, k_scale, v_scale,
        float(scale), heads, num_kv_heads, group, chunks, parts, *out.stride()[:2], *query.stride()[:2],
        *key_cache.stride()[:2], *value_cache.stride()[:2], *block_tables.stride(),
        SIZE=block_size, X=key_cache.shape[4], HEAD=size, PADDED=padded, QUERIES=queries, TOKENS=tokens,
        SLOPED=alibi_slopes is not None, FP8=fp8, SINGLE=parts == 1,
        num_warps=4, num_stages=3 if padded <= 128 else 2,
    )  # fmt: skip
    if parts > 1:
        _merge[(sequences * heads,)](
            out, sums, most, total, seq_lens, heads, parts, *out.stride()[:2],
            HEAD=size, PADDED=padded, TOKENS=tokens, PARTS=triton.next_power_of_2(parts), num_warps=4,
        )  # fmt: skip
