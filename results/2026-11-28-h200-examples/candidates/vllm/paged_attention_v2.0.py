"""paged_attention_v2: one query token per sequence attends to paged keys and values, part by part.

A program has one part of a sequence's tokens and one key head, with up to 64 query heads that share it, so that it
multiplies matrices. It keeps a running maximum, sum and weighted value in float32 (base 2); a second kernel merges the
parts.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _add_tokens(
    query, most, total, weighted, first, length, table_ptr, key_ptr, value_ptr, key_block, value_block, scale, slope,
    SIZE: tl.constexpr, X: tl.constexpr, KEY_PART: tl.constexpr, KEY_TOKEN: tl.constexpr, KEY_X: tl.constexpr,
    VALUE_ROW: tl.constexpr, VALUE_TOKEN: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr,
    TOKENS: tl.constexpr, PARTLY: tl.constexpr, SLOPED: tl.constexpr,
):  # fmt: skip
    """Adds TOKENS tokens from ``first`` on; PARTLY: the sequence may end among them. Blocks have SIZE tokens."""
    token = first + tl.arange(0, TOKENS)
    place = token % SIZE
    d = tl.arange(0, PADDED)
    real = (token // SIZE < (length + SIZE - 1) // SIZE) if PARTLY else (token >= 0)
    table_at = table_ptr + token // SIZE
    block = (tl.load(table_at, mask=real, other=0) if PARTLY else tl.load(table_at)).to(tl.int64)
    key_at = (block * key_block + place * KEY_TOKEN)[None, :] + ((d // X) * KEY_PART + (d % X) * KEY_X)[:, None]
    value_at = (block * value_block + place * VALUE_TOKEN)[:, None] + (d * VALUE_ROW)[None, :]
    if PARTLY or HEAD != PADDED:
        key = tl.load(key_ptr + key_at, mask=real[None, :] & (d < HEAD)[:, None], other=0.0).to(query.dtype)
        value = tl.load(value_ptr + value_at, mask=real[:, None] & (d < HEAD)[None, :], other=0.0).to(query.dtype)
    else:
        key = tl.load(key_ptr + key_at).to(query.dtype)
        value = tl.load(value_ptr + value_at).to(query.dtype)
    if PARTLY:
        # Whatever lies behind the sequence's end, NaN too, has no part in the sum.
        value = tl.where((token < length)[:, None], value, 0.0).to(value.dtype)
    score = tl.dot(query, key, input_precision="ieee") * scale
    if SLOPED:
        score += slope[:, None] * (token - length + 1).to(tl.float32)[None, :]
    if PARTLY:
        score = tl.where((token < length)[None, :], score, float("-inf"))
    above = tl.maximum(most, tl.max(score, axis=1))
    fading = tl.exp2(most - above)
    share = tl.exp2(score - above[:, None])
    total = total * fading + tl.sum(share, axis=1)
    weighted = tl.dot(share.to(query.dtype), value, weighted * fading[:, None], input_precision="ieee")
    return above, total, weighted


@triton.jit
def _attend(
    out_ptr, part_ptr, most_ptr, total_ptr, query_ptr, key_ptr, value_ptr, table_ptr, length_ptr, slope_ptr,
    k_scale_ptr, v_scale_ptr, scale, heads, parts, query_seq, query_head, query_d, table_seq, length_seq, slope_head,
    key_block, key_head, value_block, value_head,
    GROUP: tl.constexpr, QUERIES: tl.constexpr, SIZE: tl.constexpr, X: tl.constexpr,
    KEY_PART: tl.constexpr, KEY_TOKEN: tl.constexpr, KEY_X: tl.constexpr, VALUE_ROW: tl.constexpr,
    VALUE_TOKEN: tl.constexpr, HEAD: tl.constexpr, PADDED: tl.constexpr, TOKENS: tl.constexpr, PART: tl.constexpr,
    SLOPED: tl.constexpr, FP8: tl.constexpr, SINGLE: tl.constexpr,
):  # fmt: skip
    """PART tokens for QUERIES of the GROUP query heads of a key head; SINGLE: there is one part only."""
    # One axis: the others of a grid end at 65,535.
    CHUNKS: tl.constexpr = (GROUP + QUERIES - 1) // QUERIES
    part, chunks = tl.program_id(0) % parts, heads // GROUP * CHUNKS
    chunk = tl.program_id(0) // parts % chunks
    group, first = chunk // CHUNKS, chunk % CHUNKS * QUERIES
    sequence = (tl.program_id(0) // parts // chunks).to(tl.int64)
    length = tl.load(length_ptr + sequence * length_seq)
    start = part * PART
    if start < length:
        i = first + tl.arange(0, QUERIES)
        head = group * GROUP + i
        d = tl.arange(0, PADDED)
        inside = (i < GROUP)[:, None] & (d < HEAD)[None, :]
        query_at = query_ptr + sequence * query_seq + head[:, None].to(tl.int64) * query_head + d[None, :] * query_d
        query = tl.load(query_at, mask=inside, other=0.0)
        LOG2_E: tl.constexpr = 1.4426950408889634
        scale *= LOG2_E
        if FP8:
            scale *= tl.load(k_scale_ptr)
        slope = tl.zeros([QUERIES], dtype=tl.float32)
        if SLOPED:
            slope = tl.load(slope_ptr + head.to(tl.int64) * slope_head, mask=i < GROUP, other=0.0) * LOG2_E
        table_ptr += sequence * table_seq
        key_ptr += group.to(tl.int64) * key_head
        value_ptr += group.to(tl.int64) * value_head
        end = tl.minimum(start + PART, length)
        full = (end - start) // TOKENS
        most = tl.full([QUERIES], float("-inf"), dtype=tl.float32)
        total = tl.zeros([QUERIES], dtype=tl.float32)
        weighted = tl.zeros([QUERIES, PADDED], dtype=tl.float32)
        for tile in range(full):
            most, total, weighted = _add_tokens(
                query, most, total, weighted, start + tile * TOKENS, length, table_ptr, key_ptr, value_ptr, key_block,
                value_block, scale, slope, SIZE, X, KEY_PART, KEY_TOKEN, KEY_X, VALUE_ROW, VALUE_TOKEN, HEAD, PADDED,
                TOKENS, False, SLOPED,
            )  # fmt: skip
        if start + full * TOKENS < end:
            most, total, weighted = _add_tokens(
                query, most, total, weighted, start + full * TOKENS, length, table_ptr, key_ptr, value_ptr, key_block,
                value_block, scale, slope, SIZE, X, KEY_PART, KEY_TOKEN, KEY_X, VALUE_ROW, VALUE_TOKEN, HEAD, PADDED,
                TOKENS, True, SLOPED,
            )  # fmt: skip
        row = sequence * heads + head
        if SINGLE:
            result = weighted / total[:, None]
            if FP8:
                result *= tl.load(v_scale_ptr)
            out_at = out_ptr + row[:, None] * HEAD + d[None, :]
            tl.store(out_at, result.to(out_ptr.dtype.element_ty), mask=inside)
        else:
            at = row * parts + part
            tl.store(part_ptr + at[:, None] * HEAD + d[None, :], weighted, mask=inside)
            tl.store(most_ptr + at, most, mask=i < GROUP)
            tl.store(total_ptr + at, total, mask=i < GROUP)


@triton.jit
def _merge(
    out_ptr, part_ptr, most_ptr, total_ptr, length_ptr, v_scale_ptr, heads, parts, length_seq,
    HEAD: tl.constexpr, PADDED: tl.constexpr, PARTS: tl.constexpr, PART: tl.constexpr, FP8: tl.constexpr,
):  # fmt: skip
    """One head of one sequence: its parts, PARTS at a time, weighted by the shares of their sums."""
    row = tl.program_id(0).to(tl.int64)
    length = tl.load(length_ptr + row // heads * length_seq)
    count = (length + PART - 1) // PART
    i = tl.arange(0, PARTS)
    d = tl.arange(0, PADDED)
    highest = tl.full([PARTS], float("-inf"), dtype=tl.float32)
    for start in range(0, count, PARTS):
        most = tl.load(most_ptr + row * parts + start + i, mask=start + i < count, other=float("-inf"))
        highest = tl.maximum(highest, most)
    above = tl.max(highest, axis=0)
    weighted = tl.zeros([PARTS, PADDED], dtype=tl.float32)
    totals = tl.zeros([PARTS], dtype=tl.float32)
    for start in range(0, count, PARTS):
        at = row * parts + start + i
        live = start + i < count
        share = tl.exp2(tl.load(most_ptr + at, mask=live, other=float("-inf")) - above)
        totals += share * tl.load(total_ptr + at, mask=live, other=0.0)
        inside = live[:, None] & (d < HEAD)[None, :]
        weighted += tl.load(part_ptr + at[:, None] * HEAD + d[None, :], mask=inside, other=0.0) * share[:, None]
    result = tl.sum(weighted, axis=0) / tl.sum(totals, axis=0)
    if FP8:
        result *= tl.load(v_scale_ptr)
    tl.store(out_ptr + row * HEAD + d, result.to(out_ptr.dtype.element_ty), mask=d < HEAD)


def paged_attention_v2(
    out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,
    block_size, max_seq_len, alibi_slopes, kv_cache_dtype, k_scale, v_scale, tp_rank=0, blocksparse_local_blocks=0,
    blocksparse_vert_stride=0, blocksparse_block_size=64, blocksparse_head_sliding_step=0,
):  # fmt: skip
    """out, query: (sequences, heads, head_size); block_tables: (sequences, blocks) int32; seq_lens: int32.

    Keys lie as (blocks, kv heads, head_size / x, block_size, x), values as (blocks, kv heads, head_size, block_size).
    kv_cache_dtype 'auto' keeps the dtype, so the scales have nothing to scale; otherwise the caches are fp8.
    """
    sequences, heads, size = query.shape
    if out.numel() == 0:
        return
    fp8, sloped = kv_cache_dtype != "auto", alibi_slopes is not None
    if fp8:
        key_cache, value_cache = key_cache.view(torch.float8_e4m3fn), value_cache.view(torch.float8_e4m3fn)
    padded = max(16, triton.next_power_of_2(size))
    group = heads // num_kv_heads
    part = 512
    while part > 128 and sequences * num_kv_heads * triton.cdiv(max_seq_len, part) < 1024:
        part //= 2
    parts = max(1, triton.cdiv(max_seq_len, part))
    sums = most = total = out
    if parts > 1:
        sums = torch.empty((sequences, heads, parts, size), dtype=torch.float32, device=query.device)
        most = torch.empty((sequences, heads, parts), dtype=torch.float32, device=query.device)
        total = torch.empty_like(most)
    tokens = (128 if fp8 else 64) // (1 if padded <= 128 else 2)
    queries = min(64, max(16, triton.next_power_of_2(group)))
    _attend[(parts * num_kv_heads * triton.cdiv(group, queries) * sequences,)](
        out, sums, most, total, query, key_cache, value_cache, block_tables, seq_lens, alibi_slopes, k_scale, v_scale,
        float(scale), heads, parts, *query.stride(), block_tables.stride(0), seq_lens.stride(0),
        alibi_slopes.stride(0) if sloped else 1, *key_cache.stride()[:2], *value_cache.stride()[:2],
        GROUP=group, QUERIES=queries, SIZE=block_size, X=key_cache.shape[4],
        KEY_PART=key_cache.stride(2), KEY_TOKEN=key_cache.stride(3), KEY_X=key_cache.stride(4),
        VALUE_ROW=value_cache.stride(2), VALUE_TOKEN=value_cache.stride(3), HEAD=size, PADDED=padded, TOKENS=tokens,
        PART=part, SLOPED=sloped, FP8=fp8, SINGLE=parts == 1, num_warps=4, num_stages=3,
    )  # fmt: skip
    if parts > 1:
        _merge[(sequences * heads,)](
            out, sums, most, total, seq_lens, v_scale, heads, parts, seq_lens.stride(0), HEAD=size, PADDED=padded,
            PARTS=min(32, triton.next_power_of_2(parts)), PART=part, FP8=fp8, num_warps=4,
        )  # fmt: skip
