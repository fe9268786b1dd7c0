"""moe_align_block_size: token ids sorted by expert, each expert's part padded to whole blocks.

Up to 1024 ids: each program counts all of them and writes one expert's part. More: chunks of ids are counted, the
counts of each expert summed up over the chunks, and then each chunk sorts its ids by expert and puts them into place.
Over 1024 experts: no program has a counter for each, so ids are counted and placed by atomic additions.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _experts(
    id_ptr, map_ptr, i, inside, topk, id_row, id_column, map_stride, DENSE: tl.constexpr, MAPPED: tl.constexpr
):
    """The experts of ids i; a map may take an expert to -1, which is none here."""
    at = i if DENSE else (i // topk).to(tl.int64) * id_row + (i % topk).to(tl.int64) * id_column
    expert = tl.load(id_ptr + at, mask=inside, other=0).to(tl.int32)
    if MAPPED:
        expert = tl.load(map_ptr + expert.to(tl.int64) * map_stride, mask=inside, other=-1)
    return expert


@triton.jit
def _align_few(
    id_ptr, map_ptr, sorted_ptr, block_expert_ptr, total_ptr, n, topk, id_row, id_column, map_stride,
    experts, block_size, ids, id_blocks, sorted_stride, block_stride,
    DENSE: tl.constexpr, MAPPED: tl.constexpr, N: tl.constexpr, EXPERTS: tl.constexpr, FILL: tl.constexpr,
):  # fmt: skip
    """One expert's part, or, from program ``experts`` on, FILL places behind the last block; N: all ids."""
    program = tl.program_id(0)
    i = tl.arange(0, N)
    expert = _experts(id_ptr, map_ptr, i, i < n, topk, id_row, id_column, map_stride, DENSE, MAPPED)
    valid = (i < n) & (expert >= 0)
    each = tl.arange(0, EXPERTS)
    blocks = (tl.histogram(tl.where(valid, expert, 0), EXPERTS, mask=valid) + block_size - 1) // block_size
    total = tl.sum(blocks, axis=0)
    if program < experts:
        own = (valid & (expert == program)).to(tl.int32)
        rank = tl.cumsum(own, axis=0) - 1
        first = tl.sum(tl.where(each < program, blocks, 0), axis=0)
        count = tl.sum(tl.where(each == program, blocks, 0), axis=0)
        start = first * block_size
        tl.store(sorted_ptr + (start + rank).to(tl.int64) * sorted_stride, i, mask=own != 0)
        for begin in range(tl.sum(own, axis=0), count * block_size, 128):
            j = begin + tl.arange(0, 128)
            padded = (j < count * block_size) & (start + j < ids)
            place = sorted_ptr + (start + j).to(tl.int64) * sorted_stride
            tl.store(place, tl.zeros([128], dtype=tl.int32) + n, mask=padded)
        for begin in range(0, count, 128):
            j = begin + tl.arange(0, 128)
            place = block_expert_ptr + (first + j).to(tl.int64) * block_stride
            here = (j < count) & (first + j < id_blocks)
            tl.store(place, tl.zeros([128], dtype=tl.int32) + program, mask=here)
    else:
        j = (program - experts) * FILL + tl.arange(0, FILL)
        padding = tl.zeros([FILL], dtype=tl.int32)
        behind = (j < ids) & (j >= total * block_size)
        tl.store(sorted_ptr + j.to(tl.int64) * sorted_stride, padding + n, mask=behind)
        behind = (j < id_blocks) & (j >= total)
        tl.store(block_expert_ptr + j.to(tl.int64) * block_stride, padding - 1, mask=behind)
        if program == experts:
            tl.store(total_ptr, total * block_size)


@triton.jit
def _count(
    id_ptr, map_ptr, count_ptr, sorted_ptr, n, topk, id_row, id_column, map_stride, experts, chunks, ids, sorted_stride,
    DENSE: tl.constexpr, MAPPED: tl.constexpr, CHUNK: tl.constexpr, EXPERTS: tl.constexpr, FILL: tl.constexpr,
):  # fmt: skip
    """count (experts, chunks): ids of each expert in a chunk. Programs from ``chunks`` on fill the result with n."""
    program = tl.program_id(0)
    if program < chunks:
        i = program * CHUNK + tl.arange(0, CHUNK)
        expert = _experts(id_ptr, map_ptr, i, i < n, topk, id_row, id_column, map_stride, DENSE, MAPPED)
        valid = (i < n) & (expert >= 0)
        count = tl.histogram(tl.where(valid, expert, 0), EXPERTS, mask=valid)
        each = tl.arange(0, EXPERTS)
        tl.store(count_ptr + each.to(tl.int64) * chunks + program, count, mask=each < experts)
    else:
        j = (program - chunks) * FILL + tl.arange(0, FILL)
        padding = tl.zeros([FILL], dtype=tl.int32) + n
        tl.store(sorted_ptr + j.to(tl.int64) * sorted_stride, padding, mask=j < ids)


@triton.jit
def _sum_before(count_ptr, before_ptr, total_ptr, chunks, BLOCK: tl.constexpr):
    """before (experts, chunks): one expert's ids in the chunks before each."""
    expert = tl.program_id(0)
    row = expert.to(tl.int64) * chunks
    total = expert * 0
    for start in range(0, chunks, BLOCK):
        chunk = start + tl.arange(0, BLOCK)
        count = tl.load(count_ptr + row + chunk, mask=chunk < chunks, other=0)
        tl.store(before_ptr + row + chunk, tl.cumsum(count, axis=0) - count + total, mask=chunk < chunks)
        total += tl.sum(count, axis=0)
    tl.store(total_ptr + expert, total)


@triton.jit
def _place(
    id_ptr, map_ptr, count_ptr, before_ptr, total_ptr, sorted_ptr, block_expert_ptr, padded_ptr,
    n, topk, id_row, id_column, map_stride, experts, chunks, block_size, id_blocks, sorted_stride, block_stride,
    DENSE: tl.constexpr, MAPPED: tl.constexpr, CHUNK: tl.constexpr, EXPERTS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Puts one chunk's ids into their places, or, from program ``chunks`` on, finds the experts of BLOCKS blocks."""
    program = tl.program_id(0)
    each = tl.arange(0, EXPERTS)
    real = each < experts
    blocks = (tl.load(total_ptr + each, mask=real, other=0) + block_size - 1) // block_size
    ends = tl.cumsum(blocks, axis=0)
    if program < chunks:
        j = tl.arange(0, CHUNK)
        i = program * CHUNK + j
        expert = _experts(id_ptr, map_ptr, i, i < n, topk, id_row, id_column, map_stride, DENSE, MAPPED)
        # Sorted by expert and then by place, those without an expert last.
        key = tl.sort(tl.where((i < n) & (expert >= 0), expert, EXPERTS) * CHUNK + j)
        expert = key // CHUNK
        at = each.to(tl.int64) * chunks + program
        count = tl.load(count_ptr + at, mask=real, other=0)
        before = tl.load(before_ptr + at, mask=real, other=0)
        # Where an expert's ids begin in the result, less where they begin in the sorted chunk.
        shift = (ends - blocks) * block_size + before - (tl.cumsum(count, axis=0) - count)
        target = tl.gather(shift, tl.where(expert < EXPERTS, expert, 0), 0) + j
        tl.store(sorted_ptr + target.to(tl.int64) * sorted_stride, program * CHUNK + key % CHUNK, mask=expert < EXPERTS)
    else:
        block = (program - chunks) * BLOCKS + tl.arange(0, BLOCKS)
        total = tl.sum(blocks, axis=0)
        owner = tl.sum(((ends[None, :] <= block[:, None]) & real[None, :]).to(tl.int32), axis=1)
        owner = tl.where(block < total, owner, -1)
        tl.store(block_expert_ptr + block.to(tl.int64) * block_stride, owner, mask=block < id_blocks)
        if program == chunks:
            tl.store(padded_ptr, total * block_size)


@triton.jit
def _clear(count_ptr, sorted_ptr, block_expert_ptr, n, experts, ids, id_blocks, sorted_stride, block_stride,
           BLOCK: tl.constexpr):  # fmt: skip
    """No ids counted, and all places hold what those without an id do."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    nothing = tl.zeros([BLOCK], dtype=tl.int32)
    tl.store(count_ptr + i, nothing, mask=i < experts)
    tl.store(sorted_ptr + i * sorted_stride, nothing + n, mask=i < ids)
    tl.store(block_expert_ptr + i * block_stride, nothing - 1, mask=i < id_blocks)


@triton.jit
def _count_each(
    id_ptr, map_ptr, count_ptr, n, topk, id_row, id_column, map_stride,
    DENSE: tl.constexpr, MAPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = _experts(id_ptr, map_ptr, i, i < n, topk, id_row, id_column, map_stride, DENSE, MAPPED)
    tl.atomic_add(count_ptr + expert, 1, mask=(i < n) & (expert >= 0), sem="relaxed")


@triton.jit
def _starts(count_ptr, total_ptr, experts, block_size, BLOCK: tl.constexpr):
    """Each expert's count becomes its first place; one program."""
    blocks_before = experts * 0
    for begin in range(0, experts, BLOCK):
        expert = begin + tl.arange(0, BLOCK)
        count = tl.load(count_ptr + expert, mask=expert < experts, other=0)
        blocks = (count + block_size - 1) // block_size
        first = blocks_before + tl.cumsum(blocks, axis=0) - blocks
        tl.store(count_ptr + expert, first * block_size, mask=expert < experts)
        blocks_before += tl.sum(blocks, axis=0)
    tl.store(total_ptr, blocks_before * block_size)


@triton.jit
def _place_each(
    id_ptr, map_ptr, next_ptr, sorted_ptr, block_expert_ptr, n, topk, id_row, id_column, map_stride, block_size,
    sorted_stride, block_stride, DENSE: tl.constexpr, MAPPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """next (experts,): the next free place of each expert's part."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expert = _experts(id_ptr, map_ptr, i, i < n, topk, id_row, id_column, map_stride, DENSE, MAPPED)
    valid = (i < n) & (expert >= 0)
    place = tl.atomic_add(next_ptr + expert, 1, mask=valid, sem="relaxed")
    tl.store(sorted_ptr + place.to(tl.int64) * sorted_stride, i, mask=valid)
    tl.store(block_expert_ptr + (place // block_size).to(tl.int64) * block_stride, expert, mask=valid)


def moe_align_block_size(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map=None
):
    """topk_ids: (tokens, topk); sorted_token_ids is filled with their number, experts_ids with -1, both int32."""
    n, ids, id_blocks = topk_ids.numel(), sorted_token_ids.numel(), experts_ids.numel()
    topk, column = (max(1, topk_ids.shape[-1]), topk_ids.stride(1)) if topk_ids.dim() == 2 else (1, 0)
    mapped = maybe_expert_map is not None
    read = (n, topk, topk_ids.stride(0), column, maybe_expert_map.stride(0) if mapped else 1)
    strides = (sorted_token_ids.stride(0), experts_ids.stride(0))
    kinds = {"DENSE": topk_ids.is_contiguous(), "MAPPED": mapped}
    if num_experts > 1024:
        count = torch.empty((num_experts,), dtype=torch.int32, device=topk_ids.device)
        _clear[(triton.cdiv(max(num_experts, ids, id_blocks), 1024),)](
            count, sorted_token_ids, experts_ids, n, num_experts, ids, id_blocks, *strides, BLOCK=1024
        )
        _count_each[(triton.cdiv(n, 256),)](topk_ids, maybe_expert_map, count, *read, **kinds, BLOCK=256)
        _starts[(1,)](count, num_tokens_post_pad, num_experts, block_size, BLOCK=1024)
        _place_each[(triton.cdiv(n, 256),)](
            topk_ids, maybe_expert_map, count, sorted_token_ids, experts_ids, *read, block_size, *strides, **kinds,
            BLOCK=256,
        )  # fmt: skip
        return
    experts = max(32, triton.next_power_of_2(num_experts))
    if n <= 1024:
        _align_few[(num_experts + max(1, triton.cdiv(max(ids, id_blocks), 1024)),)](
            topk_ids, maybe_expert_map, sorted_token_ids, experts_ids, num_tokens_post_pad, *read, num_experts,
            block_size, ids, id_blocks, *strides, **kinds, N=max(128, triton.next_power_of_2(n)), EXPERTS=experts,
            FILL=1024, num_warps=4,
        )  # fmt: skip
        return
    chunks = triton.cdiv(n, 512)
    count = torch.empty((num_experts, chunks), dtype=torch.int32, device=topk_ids.device)
    before = torch.empty_like(count)
    total = torch.empty((num_experts,), dtype=torch.int32, device=topk_ids.device)
    _count[(chunks + triton.cdiv(ids, 1024),)](
        topk_ids, maybe_expert_map, count, sorted_token_ids, *read, num_experts, chunks, ids, strides[0],
        **kinds, CHUNK=512, EXPERTS=experts, FILL=1024, num_warps=4,
    )  # fmt: skip
    block = min(1024, max(32, triton.next_power_of_2(chunks)))
    _sum_before[(num_experts,)](count, before, total, chunks, BLOCK=block, num_warps=4 if chunks > 128 else 1)
    _place[(chunks + max(1, triton.cdiv(id_blocks, 16)),)](
        topk_ids, maybe_expert_map, count, before, total, sorted_token_ids, experts_ids, num_tokens_post_pad, *read,
        num_experts, chunks, block_size, id_blocks, *strides, **kinds, CHUNK=512, EXPERTS=experts, BLOCKS=16,
        num_warps=4,
    )  # fmt: skip
