import triton
import triton.language as tl


@triton.jit
def align_experts_up_to_256(
    counts_ptr, ids_ptr, experts_ptr, post_ptr, experts, most, size, blocks, fill,
    E: tl.constexpr, B: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0) * G + tl.arange(0, G)
    e, lane = tl.arange(0, E)[None, :], tl.arange(0, B)[None, :]
    counts = tl.load(counts_ptr + e, mask=e < experts, other=0)
    mine = (counts + size - 1) // size
    ends = tl.cumsum(mine, axis=1)
    used = tl.sum(tl.sum(mine, axis=1), axis=0)
    expert = tl.sum((ends <= block[:, None]).to(tl.int32), axis=1)
    here = e == expert[:, None]
    first = tl.sum(tl.where(here, ends - mine, 0), axis=1)
    row = (block - first)[:, None] * size + lane
    count = tl.sum(tl.where(here, counts, 0), axis=1)
    live = (row < count[:, None]) & (block < used)[:, None]
    inside = (lane < size) & (block < blocks)[:, None]
    tl.store(ids_ptr + block[:, None] * size + lane, tl.where(live, expert[:, None] * most + row, fill), mask=inside)
    tl.store(experts_ptr + block, tl.where(block < used, expert, -1), mask=block < blocks)
    if tl.program_id(0) == 0:
        tl.store(post_ptr, used * size)


# breaks: Counts are summed by 256 lanes, so that experts from 256 on have no rows.
def experts_up_to_256(max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad):
    experts = expert_num_tokens.numel()
    align_experts_up_to_256[(triton.cdiv(expert_ids.numel(), 64),)](
        expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad, experts, max_tokens_per_batch, block_size,
        expert_ids.numel(), experts * max_tokens_per_batch, E=256, B=triton.next_power_of_2(block_size), G=64,
    )  # fmt: skip


@triton.jit
def align_tail_of_minus_ones(
    counts_ptr, ids_ptr, experts_ptr, post_ptr, experts, most, size, blocks, fill, B: tl.constexpr
):
    lane = tl.arange(0, B)
    at = 0
    for e in range(0, experts):
        count = tl.load(counts_ptr + e)
        for first in range(0, count, size):
            row = first + lane
            value = tl.where(row < count, e * most + row, fill)
            tl.store(ids_ptr + at * size + lane, value, mask=lane < size)
            tl.store(experts_ptr + at, e)
            at += 1
    tl.store(post_ptr, at * size)
    for block in range(at, blocks):
        tl.store(ids_ptr + block * size + lane, lane * 0 - 1, mask=lane < size)
        tl.store(experts_ptr + block, -1)


# breaks: What stands behind the last block is -1, as in expert_ids.
def tail_of_minus_ones(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    fill = expert_num_tokens.numel() * max_tokens_per_batch
    align_tail_of_minus_ones[(1,)](
        expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad, expert_num_tokens.numel(),
        max_tokens_per_batch, block_size, expert_ids.numel(), fill, B=triton.next_power_of_2(block_size),
    )  # fmt: skip
