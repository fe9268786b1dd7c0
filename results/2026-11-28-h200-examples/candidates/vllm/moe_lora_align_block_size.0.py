"""moe_lora_align_block_size: each adapter's (token, expert) pairs, sorted by expert and padded to blocks.

Few pairs: one program for each adapter and expert counts all pairs and writes its part. Many: chunks of pairs are
counted, the counts become places, and then each chunk puts its pairs into their places. Over 512 experts: comparing
each pair with each expert would take longest, so pairs are counted and placed by atomic additions.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _in_use(lora_ptr, enabled_ptr, lora, loras, LORAS: tl.constexpr):
    i = tl.arange(0, LORAS)
    found = tl.max((tl.load(lora_ptr + i, mask=i < loras, other=-1) == lora).to(tl.int32), axis=0)
    return (found > 0) & (tl.load(enabled_ptr + lora) != 0)


@triton.jit
def _pairs(expert_ptr, token_lora_ptr, map_ptr, i, inside, topk, MAPPED: tl.constexpr):
    """Adapter and expert of pairs i, -1 where there is none."""
    lora = tl.load(token_lora_ptr + i // topk, mask=inside, other=-1)
    expert = tl.load(expert_ptr + i, mask=inside, other=0)
    if MAPPED:
        expert = tl.load(map_ptr + expert, mask=inside, other=-1)
    return lora, expert


@triton.jit
def _fill(ptr, begin, end, step, value, BLOCK: tl.constexpr):
    for start in range(begin, end, step):
        i = start + tl.arange(0, BLOCK)
        tl.store(ptr + i, tl.zeros([BLOCK], dtype=tl.int32) + value, mask=i < end)


@triton.jit
def _align_few(
    expert_ptr, token_lora_ptr, map_ptr, lora_ptr, enabled_ptr, sorted_ptr, block_expert_ptr, padded_ptr,
    pairs, topk, experts, block_size, loras, ids, blocks,
    MAPPED: tl.constexpr, PAIRS: tl.constexpr, EXPERTS: tl.constexpr, LORAS: tl.constexpr, FILL: tl.constexpr,
):  # fmt: skip
    """The part of one adapter and expert; what lies behind the last block is shared by the adapter's programs."""
    lora = tl.program_id(0) // experts
    own = tl.program_id(0) - lora * experts
    if _in_use(lora_ptr, enabled_ptr, lora, loras, LORAS):
        each = tl.arange(0, EXPERTS)
        count = tl.zeros([EXPERTS], dtype=tl.int32)
        for start in range(0, pairs, PAIRS):
            i = start + tl.arange(0, PAIRS)
            of_lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
            key = tl.where((i < pairs) & (of_lora == lora), expert, -1)
            count += tl.sum((key[:, None] == each[None, :]).to(tl.int32), axis=0)
        count = tl.where(each < experts, count, 0)
        needed = (count + block_size - 1) // block_size
        first = tl.sum(tl.where(each < own, needed, 0), axis=0)
        own_pairs = tl.sum(tl.where(each == own, count, 0), axis=0)
        own_blocks = tl.sum(tl.where(each == own, needed, 0), axis=0)
        total = tl.sum(needed, axis=0)
        ids_at = sorted_ptr + lora.to(tl.int64) * ids
        blocks_at = block_expert_ptr + lora.to(tl.int64) * blocks
        place = first * block_size
        for start in range(0, pairs, PAIRS):
            i = start + tl.arange(0, PAIRS)
            of_lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
            hit = (i < pairs) & (of_lora == lora) & (expert == own)
            rank = tl.cumsum(hit.to(tl.int32), axis=0) - 1
            tl.store(ids_at + place + rank, i, mask=hit)
            place += tl.sum(hit.to(tl.int32), axis=0)
        end = (first + own_blocks) * block_size
        _fill(ids_at, first * block_size + own_pairs, end, FILL, pairs, FILL)
        _fill(blocks_at, first, first + own_blocks, FILL, own, FILL)
        _fill(ids_at, total * block_size + own * FILL, ids, experts * FILL, pairs, FILL)
        _fill(blocks_at, total + own * FILL, blocks, experts * FILL, -1, FILL)
        if own == 0:
            tl.store(padded_ptr + lora, total * block_size)


@triton.jit
def _count(
    expert_ptr, token_lora_ptr, map_ptr, lora_ptr, enabled_ptr, sorted_ptr, count_ptr,
    pairs, topk, experts, adapters, loras, ids, bins, chunks,
    MAPPED: tl.constexpr, CHUNK: tl.constexpr, BINS: tl.constexpr, LORAS: tl.constexpr, FILL: tl.constexpr,
):  # fmt: skip
    """count (chunks, adapters * experts): a chunk's pairs of each; and all places are filled with ``pairs``."""
    chunk = tl.program_id(0)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
    key = tl.where((i < pairs) & (lora >= 0) & (expert >= 0), lora * experts + expert, -1)
    for start in range(0, bins, BINS):
        bin = start + tl.arange(0, BINS)
        count = tl.sum((key[:, None] == bin[None, :]).to(tl.int32), axis=0)
        tl.store(count_ptr + chunk.to(tl.int64) * bins + bin, count, mask=bin < bins)
    for adapter in range(adapters):
        if _in_use(lora_ptr, enabled_ptr, adapter, loras, LORAS):
            _fill(sorted_ptr + adapter.to(tl.int64) * ids, chunk * FILL, ids, chunks * FILL, pairs, FILL)


@triton.jit
def _to_places(
    lora_ptr, enabled_ptr, block_expert_ptr, padded_ptr, count_ptr, experts, block_size, loras, blocks, bins, chunks,
    CHUNKS: tl.constexpr, EXPERTS: tl.constexpr, LORAS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """One adapter: replaces a chunk's count of an expert by the place of its first such pair; finds blocks' experts."""
    lora = tl.program_id(0)
    if _in_use(lora_ptr, enabled_ptr, lora, loras, LORAS):
        each = tl.arange(0, EXPERTS)
        count_ptr += lora * experts
        totals = tl.zeros([EXPERTS], dtype=tl.int32)
        for start in range(0, chunks, CHUNKS):
            chunk = start + tl.arange(0, CHUNKS)
            inside = (chunk < chunks)[:, None] & (each < experts)[None, :]
            at = count_ptr + (chunk.to(tl.int64) * bins)[:, None] + each[None, :]
            totals += tl.sum(tl.load(at, mask=inside, other=0), axis=0)
        needed = (totals + block_size - 1) // block_size
        ends = tl.cumsum(needed, axis=0)
        total = tl.sum(needed, axis=0)
        place = (ends - needed) * block_size
        for start in range(0, chunks, CHUNKS):
            chunk = start + tl.arange(0, CHUNKS)
            inside = (chunk < chunks)[:, None] & (each < experts)[None, :]
            at = count_ptr + (chunk.to(tl.int64) * bins)[:, None] + each[None, :]
            count = tl.load(at, mask=inside, other=0)
            tl.store(at, place[None, :] + tl.cumsum(count, axis=0) - count, mask=inside)
            place += tl.sum(count, axis=0)
        for start in range(0, blocks, BLOCKS):
            block = start + tl.arange(0, BLOCKS)
            expert = tl.sum((ends[None, :] <= block[:, None]).to(tl.int32), axis=1)
            at = block_expert_ptr + lora.to(tl.int64) * blocks + block
            tl.store(at, tl.where(block < total, expert, -1), mask=block < blocks)
        tl.store(padded_ptr + lora, total * block_size)


@triton.jit
def _place(
    expert_ptr, token_lora_ptr, map_ptr, enabled_ptr, sorted_ptr, place_ptr, pairs, topk, experts, ids, bins,
    MAPPED: tl.constexpr, CHUNK: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """A pair's place is its chunk's for the expert plus the number of such pairs before it in the chunk."""
    chunk = tl.program_id(0)
    j = tl.arange(0, CHUNK)
    i = chunk * CHUNK + j
    lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
    live = (i < pairs) & (lora >= 0) & (expert >= 0)
    live = live & (tl.load(enabled_ptr + lora, mask=live, other=0) != 0)
    key = tl.where(live, lora * experts + expert, -1)
    rank = tl.zeros([CHUNK], dtype=tl.int32)
    for start in range(0, CHUNK, OTHERS):
        other = start + tl.arange(0, OTHERS)
        at = chunk * CHUNK + other
        of_lora, of_expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, at, at < pairs, topk, MAPPED)
        other_key = tl.where((at < pairs) & (of_lora >= 0) & (of_expert >= 0), of_lora * experts + of_expert, -2)
        rank += tl.sum(((key[:, None] == other_key[None, :]) & (other[None, :] < j[:, None])).to(tl.int32), axis=1)
    first = tl.load(place_ptr + chunk.to(tl.int64) * bins + key, mask=live, other=0)
    tl.store(sorted_ptr + lora.to(tl.int64) * ids + first + rank, i, mask=live)


@triton.jit
def _clear(
    lora_ptr, enabled_ptr, count_ptr, sorted_ptr, block_expert_ptr, pairs, experts, loras, ids, blocks, tiles,
    LORAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK counts of an adapter are 0, and BLOCK of its places hold what those without a pair do."""
    lora = tl.program_id(0) // tiles
    if _in_use(lora_ptr, enabled_ptr, lora, loras, LORAS):
        i = tl.program_id(0) % tiles * BLOCK + tl.arange(0, BLOCK)
        row = lora.to(tl.int64)
        nothing = tl.zeros([BLOCK], dtype=tl.int32)
        tl.store(count_ptr + row * experts + i, nothing, mask=i < experts)
        tl.store(sorted_ptr + row * ids + i, nothing + pairs, mask=i < ids)
        tl.store(block_expert_ptr + row * blocks + i, nothing - 1, mask=i < blocks)


@triton.jit
def _count_each(
    expert_ptr, token_lora_ptr, map_ptr, enabled_ptr, count_ptr, pairs, topk, experts,
    MAPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
    live = (i < pairs) & (lora >= 0) & (expert >= 0)
    live = live & (tl.load(enabled_ptr + lora, mask=live, other=0) != 0)
    tl.atomic_add(count_ptr + lora.to(tl.int64) * experts + expert, 1, mask=live, sem="relaxed")


@triton.jit
def _starts(
    lora_ptr, enabled_ptr, count_ptr, padded_ptr, experts, block_size, loras, LORAS: tl.constexpr, BLOCK: tl.constexpr
):
    """One adapter: each expert's count becomes its first place."""
    lora = tl.program_id(0)
    if _in_use(lora_ptr, enabled_ptr, lora, loras, LORAS):
        count_ptr += lora.to(tl.int64) * experts
        before = lora * 0
        for begin in range(0, experts, BLOCK):
            expert = begin + tl.arange(0, BLOCK)
            count = tl.load(count_ptr + expert, mask=expert < experts, other=0)
            needed = (count + block_size - 1) // block_size
            first = before + tl.cumsum(needed, axis=0) - needed
            tl.store(count_ptr + expert, first * block_size, mask=expert < experts)
            before += tl.sum(needed, axis=0)
        tl.store(padded_ptr + lora, before * block_size)


@triton.jit
def _place_each(
    expert_ptr, token_lora_ptr, map_ptr, enabled_ptr, next_ptr, sorted_ptr, block_expert_ptr, pairs, topk, experts,
    block_size, ids, blocks, MAPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """next (adapters, experts): the next free place of each part."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lora, expert = _pairs(expert_ptr, token_lora_ptr, map_ptr, i, i < pairs, topk, MAPPED)
    live = (i < pairs) & (lora >= 0) & (expert >= 0)
    live = live & (tl.load(enabled_ptr + lora, mask=live, other=0) != 0)
    lora = lora.to(tl.int64)
    place = tl.atomic_add(next_ptr + lora * experts + expert, 1, mask=live, sem="relaxed")
    tl.store(sorted_ptr + lora * ids + place, i, mask=live)
    tl.store(block_expert_ptr + lora * blocks + place // block_size, expert, mask=live)


def moe_lora_align_block_size(
    topk_ids, token_lora_mapping, num_experts, block_size, max_loras, max_num_tokens_padded, max_num_m_blocks,
    sorted_token_ids, experts_ids, num_tokens_post_pad, adapter_enabled, lora_ids, maybe_expert_map,
):  # fmt: skip
    """topk_ids: (tokens, topk); sorted_token_ids, experts_ids, num_tokens_post_pad: one row for each of max_loras.

    token_lora_mapping: a token's adapter or -1. Rows of adapters that are not in use stay as they are. All int32.
    """
    pairs, topk = topk_ids.numel(), max(1, topk_ids.shape[1] if topk_ids.dim() > 1 else 1)
    if max_loras == 0 or num_experts == 0:
        return
    read = (topk_ids, token_lora_mapping, maybe_expert_map)
    use = (lora_ids, adapter_enabled)
    mapped, loras = maybe_expert_map is not None, lora_ids.numel()
    experts = triton.next_power_of_2(max(num_experts, 16))
    held = triton.next_power_of_2(max(loras, 2))
    if num_experts > 512:
        count = torch.empty((max_loras, num_experts), dtype=torch.int32, device=topk_ids.device)
        tiles = triton.cdiv(max(num_experts, max_num_tokens_padded, max_num_m_blocks), 1024)
        _clear[(max_loras * tiles,)](
            *use, count, sorted_token_ids, experts_ids, pairs, num_experts, loras, max_num_tokens_padded,
            max_num_m_blocks, tiles, LORAS=held, BLOCK=1024,
        )  # fmt: skip
        each = (triton.cdiv(pairs, 256),)
        _count_each[each](*read, adapter_enabled, count, pairs, topk, num_experts, MAPPED=mapped, BLOCK=256)
        _starts[(max_loras,)](
            *use, count, num_tokens_post_pad, num_experts, block_size, loras, LORAS=held, BLOCK=1024
        )  # fmt: skip
        _place_each[each](
            *read, adapter_enabled, count, sorted_token_ids, experts_ids, pairs, topk, num_experts, block_size,
            max_num_tokens_padded, max_num_m_blocks, MAPPED=mapped, BLOCK=256,
        )  # fmt: skip
        return
    if pairs <= 1024 or max_loras * num_experts**2 * pairs <= 1 << 26:
        step = max(32, min(2048, triton.next_power_of_2(max(pairs, 1))))
        step = max(16, min(step, 32768 // experts))
        _align_few[(max_loras * num_experts,)](
            *read, *use, sorted_token_ids, experts_ids, num_tokens_post_pad, pairs, topk, num_experts, block_size,
            loras, max_num_tokens_padded, max_num_m_blocks, MAPPED=mapped, PAIRS=step, EXPERTS=experts, LORAS=held,
            FILL=128, num_warps=8,
        )  # fmt: skip
        return
    chunks, bins = triton.cdiv(pairs, 256), max_loras * num_experts
    count = torch.empty((chunks, bins), dtype=torch.int32, device=topk_ids.device)
    _count[(chunks,)](
        *read, *use, sorted_token_ids, count, pairs, topk, num_experts, max_loras, loras, max_num_tokens_padded, bins,
        chunks, MAPPED=mapped, CHUNK=256, BINS=64, LORAS=held, FILL=512, num_warps=8,
    )  # fmt: skip
    _to_places[(max_loras,)](
        *use, experts_ids, num_tokens_post_pad, count, num_experts, block_size, loras, max_num_m_blocks, bins, chunks,
        CHUNKS=max(1, min(triton.next_power_of_2(chunks), 16384 // experts)), EXPERTS=experts, LORAS=held,
        BLOCKS=max(1, min(64, 8192 // experts)), num_warps=16,
    )  # fmt: skip
    _place[(chunks,)](
        *read, adapter_enabled, sorted_token_ids, count, pairs, topk, num_experts, max_num_tokens_padded, bins,
        MAPPED=mapped, CHUNK=256, OTHERS=64, num_warps=8,
    )  # fmt: skip
