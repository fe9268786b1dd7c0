# outcome: wrong value
# breaks: Counts are summed by 256 lanes, so that experts from 256 on have no rows.

import triton
import triton.language as tl


@triton.jit
def align(
    counts_ptr, ids_ptr, experts_ptr, post_ptr, experts, most, size, blocks, fill, E: tl.constexpr, B: tl.constexpr
):
    block = tl.program_id(0)
    e, lane = tl.arange(0, E), tl.arange(0, B)
    counts = tl.load(counts_ptr + e, mask=e < experts, other=0)
    mine = (counts + size - 1) // size
    ends = tl.cumsum(mine, axis=0)
    used = tl.sum(mine, axis=0)
    expert = tl.sum((ends <= block).to(tl.int32), axis=0)
    here = e == expert
    row = (block - tl.sum(tl.where(here, ends - mine, 0), axis=0)) * size + lane
    count = tl.sum(tl.where(here, counts, 0), axis=0)
    live = (row < count) & (block < used)
    tl.store(ids_ptr + block * size + lane, tl.where(live, expert * most + row, fill), mask=lane < size)
    tl.store(experts_ptr + block, tl.where(block < used, expert, -1))
    if block == 0:
        tl.store(post_ptr, used * size)


def batched_moe_align_block_size(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    experts = expert_num_tokens.numel()
    align[(expert_ids.numel(),)](
        expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad, experts, max_tokens_per_batch, block_size,
        expert_ids.numel(), experts * max_tokens_per_batch, E=256, B=triton.next_power_of_2(block_size),
    )  # fmt: skip
