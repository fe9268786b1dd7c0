"""batched_moe_align_block_size: token ids by expert, each expert's part padded to whole blocks.

Expert e's tokens are e * max_tokens .. e * max_tokens + count, so nothing is sorted: an expert's programs add up the
blocks before its own, write its ids and padding, and all programs share what lies behind the last block.
"""

import triton
import triton.language as tl


@triton.jit
def _align(
    count_ptr, ids_ptr, block_expert_ptr, total_ptr, experts, max_tokens, block_size, ids, id_blocks, shares,
    EXPERTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One of ``shares`` programs of one expert; EXPERTS: the next power of two."""
    expert, share = tl.program_id(0), tl.program_id(1)
    program, programs = expert * shares + share, tl.num_programs(0) * shares
    each = tl.arange(0, EXPERTS)
    counts = tl.load(count_ptr + each, mask=each < experts, other=0)
    blocks = (counts + block_size - 1) // block_size
    total = tl.sum(blocks, axis=0)
    first = tl.sum(tl.where(each < expert, blocks, 0), axis=0)
    tokens = tl.sum(tl.where(each == expert, counts, 0), axis=0)
    own = tl.sum(tl.where(each == expert, blocks, 0), axis=0)
    padding = experts * max_tokens
    i = tl.arange(0, BLOCK)
    for start in range(share * BLOCK, own * block_size, shares * BLOCK):
        at = start + i
        token = tl.where(at < tokens, expert * max_tokens + at, padding)
        tl.store(ids_ptr + first * block_size + at, token, mask=at < own * block_size)
    if share == 0:
        for start in range(0, own, BLOCK):
            at = start + i
            tl.store(block_expert_ptr + first + at, tl.zeros([BLOCK], tl.int32) + expert, mask=at < own)
    for start in range(total * block_size + program * BLOCK, ids, programs * BLOCK):
        at = start + i
        tl.store(ids_ptr + at, tl.zeros([BLOCK], tl.int32) + padding, mask=at < ids)
    for start in range(total + program * BLOCK, id_blocks, programs * BLOCK):
        at = start + i
        tl.store(block_expert_ptr + at, tl.zeros([BLOCK], tl.int32) - 1, mask=at < id_blocks)
    if program == 0:
        tl.store(total_ptr, total * block_size)


def batched_moe_align_block_size(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    """expert_num_tokens: (experts,); sorted_ids is filled with experts * max_tokens, expert_ids with -1. All int32."""
    experts = expert_num_tokens.numel()
    shares = max(1, min(64, triton.cdiv(max_tokens_per_batch, 1024)))
    _align[(max(experts, 1), shares)](
        expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad, experts, max_tokens_per_batch, block_size,
        sorted_ids.numel(), expert_ids.numel(), shares,
        EXPERTS=max(32, triton.next_power_of_2(max(experts, 1))), BLOCK=1024, num_warps=4,
    )  # fmt: skip
